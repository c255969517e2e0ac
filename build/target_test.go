package build_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sequins/build"
	"sequins/load"
	"sequins/shard"
	"sequins/source"
	"sequins/source/local"
	"sequins/store"
)

// Cancelled at any moment, a build leaves nothing, and it leaves nothing in the temporary directory.
func TestCancel(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 20, some(5000))
	temp := t.TempDir()
	for wrote := range 25 {
		to := place(t, t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		target := &counted{Source: to.Source.(*local.Source), after: int64(wrote), then: cancel}
		_, err := build.Run(ctx, build.Job{From: place(t, root), To: build.Place{Source: target, DB: "db", Version: "1"}, Temp: temp}, nil)
		canceled := ctx.Err() != nil
		cancel()
		if wrote >= 22 && !canceled {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err == nil && wrote != 21 { // the last Create is of _SUCCESS
			t.Fatalf("cancelled after %d files: no error", wrote)
		}
		if left, lerr := os.ReadDir(to.String()); err != nil && !errors.Is(lerr, os.ErrNotExist) {
			t.Fatalf("cancelled after %d files: left %v, %v", wrote, left, err)
		}
	}
	if left := must(os.ReadDir(temp))(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// counted calls then when some files have been begun.
type counted struct {
	*local.Source
	begun atomic.Int64
	after int64
	then  func()
}

func (c *counted) Create(ctx context.Context, db, version, name string, size int64) (source.FileWriter, error) {
	if c.begun.Add(1) == c.after+1 {
		c.then()
	}
	return c.Source.Create(ctx, db, version, name, size)
}

func TestTarget(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 2, some(100))
	from := place(t, root)
	try := func(to build.Place, force bool) error {
		_, err := build.Run(t.Context(), build.Job{From: from, To: to, Temp: t.TempDir(), Force: force}, nil)
		return err
	}
	for name, tt := range map[string]struct {
		files  []string
		forced bool // --force helps
	}{
		"unfinished":         {[]string{"part-00000.block", "part-00007.block", ".part-00001.block.x.unfinished"}, true},
		"unfinished at once": {[]string{".part-00001.block.x.unfinished"}, true},
		"finished":           {[]string{"part-00000.block", "_BLOCKS.json", "_SUCCESS"}, false},
		"nearly finished":    {[]string{"part-00000.block", "part-00001.block", "_BLOCKS.json"}, true},
		"only a manifest":    {[]string{"_BLOCKS.json"}, true},
		"data":               {[]string{"part-00000"}, false},
		"marker":             {[]string{"_SUCCESS"}, false},
		"job":                {[]string{"_temporary/0/x"}, false},
		"directory":          {[]string{"x/y"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			to := place(t, t.TempDir())
			for _, f := range tt.files {
				path := filepath.Join(to.String(), f)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			err := try(to, false)
			if !errors.Is(err, build.ErrOccupied) || strings.Contains(err.Error(), "--force") != tt.forced {
				t.Errorf("got %v", err)
			}
			if err := try(to, true); (err == nil) != tt.forced {
				t.Errorf("with force: %v", err)
			}
			if tt.forced {
				must(into(t, to, load.Options{}))(t)
			}
		})
	}
	if err := try(from, true); !errors.Is(err, build.ErrOccupied) {
		t.Errorf("into the input: %v", err)
	}
	inside := build.Place{Source: must(local.New(filepath.Dir(from.String())))(t), DB: filepath.Base(from.String()), Version: "day=1"}
	if err := try(inside, true); !errors.Is(err, build.ErrOccupied) || !strings.Contains(err.Error(), "it is in the version to be built") {
		t.Errorf("into a directory of the input: %v", err)
	}
	to, _ := run(t, from, load.Options{})
	if _, err := build.Run(t.Context(), build.Job{From: to, To: place(t, t.TempDir()), Temp: t.TempDir()}, nil); err == nil || !strings.Contains(err.Error(), "copy the directory") {
		t.Errorf("a finished version was built: %v", err)
	}
}

// The temporary directories of builds that were killed are removed by the next build; those of others, and of builds that run, stay.
func TestStaleTemp(t *testing.T) {
	temp, root := t.TempDir(), t.TempDir()
	write(t, root, shard.Hadoop, 2, some(100))
	abandoned := func(name string) *store.Store {
		dir := filepath.Join(temp, name)
		if err := os.MkdirAll(filepath.Join(dir, "data", "db"), 0o755); err != nil {
			t.Fatal(err)
		}
		return must(store.Open(dir))(t)
	}
	old := time.Now().Add(-time.Hour)
	if err := errors.Join(abandoned("sequins-build-1").Close(), abandoned("sequins-build-0").Close(), os.Chtimes(filepath.Join(temp, "sequins-build-1"), old, old)); err != nil {
		t.Fatal(err)
	}
	if err := abandoned("other").Close(); err != nil {
		t.Fatal(err)
	}
	runs := abandoned("sequins-build-2")
	if err := os.Chtimes(filepath.Join(temp, "sequins-build-2"), old, old); err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	elsewhere := abandoned("elsewhere")
	if err := errors.Join(elsewhere.Close(), os.Mkdir(filepath.Join(temp, "sequins-build-3"), 0o755), os.WriteFile(filepath.Join(temp, "sequins-build-4"), nil, 0o644),
		os.Symlink("elsewhere", filepath.Join(temp, "sequins-build-5"))); err != nil {
		t.Fatal(err)
	}
	if _, err := build.Run(t.Context(), build.Job{From: place(t, root), To: place(t, t.TempDir()), Temp: temp}, nil); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range must(os.ReadDir(temp))(t) {
		left = append(left, e.Name())
	}
	if want := []string{"elsewhere", "other", "sequins-build-0", "sequins-build-2", "sequins-build-3", "sequins-build-4", "sequins-build-5"}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}

// An upload that fails once is repeated; one that fails again and again ends the build, which leaves nothing.
func TestFailingUploads(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 3, some(300))
	for _, tt := range []struct {
		failures int64
		works    bool
	}{{2, true}, {100, false}} {
		to := place(t, t.TempDir())
		target := build.Place{Source: &failing{Source: to.Source.(*local.Source), failures: tt.failures}, DB: "db", Version: "1"}
		_, err := build.Run(t.Context(), build.Job{From: place(t, root), To: target, Temp: t.TempDir()}, nil)
		if tt.works {
			if err != nil {
				t.Fatal(err)
			}
			must(into(t, to, load.Options{}))(t)
			continue
		}
		if left, _ := os.ReadDir(to.String()); !errors.Is(err, errBroken) || len(left) > 0 {
			t.Errorf("left %v, %v", left, err)
		}
	}
}

var errBroken = errors.New("the connection broke")

// failing breaks the first writers after their first bytes.
type failing struct {
	*local.Source
	begun    atomic.Int64
	failures int64
}

func (f *failing) Create(ctx context.Context, db, version, name string, size int64) (source.FileWriter, error) {
	w, err := f.Source.Create(ctx, db, version, name, size)
	if err == nil && f.begun.Add(1) <= f.failures {
		w = broken{w}
	}
	return w, err
}

type broken struct{ source.FileWriter }

func (b broken) Write(p []byte) (int, error) {
	n, err := b.FileWriter.Write(p[:len(p)/2])
	return n, errors.Join(err, errBroken)
}

// Of two builds into one target, the later one does not remove the version that the earlier one has finished.
func TestTwoBuilds(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 3, some(300))
	to := place(t, t.TempDir())
	var other error
	target := &counted{Source: to.Source.(*local.Source), after: 2, then: func() {
		_, other = build.Run(t.Context(), build.Job{From: place(t, root), To: to, Temp: t.TempDir(), Force: true}, nil)
	}}
	_, err := build.Run(t.Context(), build.Job{From: place(t, root), To: build.Place{Source: target, DB: "db", Version: "1"}, Temp: t.TempDir()}, nil)
	if other != nil || !errors.Is(err, build.ErrOccupied) {
		t.Errorf("the earlier build: %v; the later one: %v", other, err)
	}
	must(into(t, to, load.Options{}))(t)
}
