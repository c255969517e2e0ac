package build_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"sequins/internal/names"
	"sequins/load"
	"sequins/load/build"
	"sequins/shard"
	"sequins/source"
	"sequins/source/local"
	"sequins/test/expect"
)

// cancelling is a source that cancels a context when a number of files has been opened.
type cancelling struct {
	*local.Source
	left   atomic.Int64
	cancel func()
}

func (c *cancelling) Open(ctx context.Context, db, version string, f source.File, o source.ReadOptions) (io.ReadCloser, error) {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
	return c.Source.Open(ctx, db, version, f, o)
}

// Cancelled at any moment, a build leaves nothing.
func TestCancel(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 20, some(5000))
	for after := 1; ; after++ {
		to := place(t, t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		canceling := &cancelling{Source: place(t, root).Source.(*local.Source), cancel: cancel}
		canceling.left.Store(int64(after))
		from := build.Place{Source: canceling, DB: "db", Version: "1"}
		_, err := build.Run(ctx, build.Job{From: from, To: to.String(), Options: load.Options{Workers: 1}}, nil)
		canceled := ctx.Err() != nil
		cancel()
		if !canceled {
			if err != nil || after < 20 {
				t.Errorf("not cancelled after %d files: %v", after, err)
			}
			return
		}
		if left, _ := os.ReadDir(filepath.Dir(to.String())); !errors.Is(err, context.Canceled) || len(left) > 0 {
			t.Fatalf("cancelled after %d files: %v, left %v", after, err, left)
		}
	}
}

func TestTarget(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 2, some(100))
	from := place(t, root)
	try := func(to string) error {
		_, err := build.Run(t.Context(), build.Job{From: from, To: to}, nil)
		return err
	}
	for name, occupy := range map[string]func(to string) error{
		"an empty directory": func(to string) error { return os.MkdirAll(to, 0o755) },
		"a file": func(to string) error {
			return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, nil, 0o644))
		},
		"a link to nothing": func(to string) error {
			return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Symlink("nothing", to))
		},
		"a finished version": try,
	} {
		to := place(t, t.TempDir()).String()
		expect.NoError(t, occupy(to))
		if err := try(to); !errors.Is(err, build.ErrOccupied) || !strings.Contains(err.Error(), to) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(filepath.Dir(to)); err != nil || len(left) != 1 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
	if err := try(filepath.Join(t.TempDir(), "db", strings.Repeat("v", names.Max))); err != nil {
		t.Errorf("the longest name: %v", err)
	}
	inside := filepath.Join(from.String(), "day=1")
	if err := try(inside); !errors.Is(err, build.ErrOccupied) || !strings.Contains(err.Error(), "it is in the version to be built") {
		t.Errorf("into a directory of the input: %v", err)
	}
	to, _ := run(t, from, load.Options{})
	if _, err := build.Run(t.Context(), build.Job{From: to, To: place(t, t.TempDir()).String()}, nil); err == nil || !strings.Contains(err.Error(), "copy the directory") {
		t.Errorf("a finished version was built: %v", err)
	}
}

// What a build that was killed has left is replaced by the next one, but not while it runs.
func TestKilled(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 2, some(100))
	to := place(t, t.TempDir())
	work := filepath.Join(filepath.Dir(to.String()), ".1.building")
	if err := errors.Join(os.MkdirAll(filepath.Join(work, "tmp"), 0o755), os.WriteFile(filepath.Join(work, "part-00007.block"), nil, 0o644),
		os.WriteFile(filepath.Join(work, source.BlocksFile), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	running := must(os.Open(work))(t)
	expect.NoError(t, unix.Flock(int(running.Fd()), unix.LOCK_EX))
	_, err := build.Run(t.Context(), build.Job{From: place(t, root), To: to.String()}, nil)
	if left, lerr := os.ReadDir(work); !errors.Is(err, build.ErrOccupied) || len(left) != 3 {
		t.Errorf("while another build runs: %v, left %v, %v", err, left, lerr)
	}
	if versions := must(source.Versions(t.Context(), to.Source, "db"))(t); len(versions) > 0 {
		t.Errorf("a source lists %q", versions)
	}
	expect.NoError(t, running.Close())
	must(build.Run(t.Context(), build.Job{From: place(t, root), To: to.String()}, nil))(t)
	must(into(t, to, load.Options{}))(t)
	if left := must(os.ReadDir(filepath.Dir(to.String())))(t); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}

// The files of a target can be read by nodes that run as another user.
func TestPermissions(t *testing.T) {
	root := t.TempDir()
	write(t, root, shard.Hadoop, 2, some(100))
	to, _ := run(t, place(t, root), load.Options{})
	for _, e := range must(os.ReadDir(to.String()))(t) {
		if info := must(e.Info())(t); info.Mode().Perm() != 0o644 {
			t.Errorf("%s has %v", e.Name(), info.Mode())
		}
	}
}
