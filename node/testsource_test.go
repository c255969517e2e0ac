package node

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"sequins/internal/sleep"
	"sequins/load/loadproc"
	"sequins/source"
	"sequins/source/local"
)

// A testSource is a source that can be made to fail or to wait, also in load processes, by files in a
// directory beside it.
type testSource struct {
	source.Source
	dir  string
	down toggle // nothing can be read
	bad  toggle // the data of versions 2 cannot be read
	gate toggle // data files wait
	// planned: data files wait that are opened after the first three: a plan of two files looks at each, and at the
	// larger one for a record.
	planned toggle
	opened  atomic.Int64 // data files, by this process
}

func control(root string) string { return root + ".control" }

func openTestSource(root string) (*testSource, error) {
	src, err := local.New(root)
	if err != nil {
		return nil, err
	}
	dir := control(root)
	return &testSource{Source: src, dir: dir, down: toggle(filepath.Join(dir, "down")),
		bad: toggle(filepath.Join(dir, "bad")), gate: toggle(filepath.Join(dir, "gate")),
		planned: toggle(filepath.Join(dir, "planned"))}, nil
}

// launcher starts load processes that read from the source.
func (f *fixture) launcher() *loadproc.Launcher {
	return &loadproc.Launcher{Source: f.root, Program: func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "/proc/self/exe")
		cmd.Env = append(os.Environ(), beLoader+"=1", "GORACE=atexit_sleep_ms=0")
		return cmd
	}}
}

// A toggle is a file that is there or not.
type toggle string

func (f toggle) Load() bool {
	_, err := os.Stat(string(f))
	return err == nil
}

func (f toggle) Store(set bool) {
	if set {
		_ = os.WriteFile(string(f), nil, 0o644)
	} else {
		_ = os.Remove(string(f))
	}
}

var errDown = errors.New("connection refused")

func (s *testSource) ReadDir(ctx context.Context, dir string) (source.Entries, error) {
	if s.down.Load() {
		return source.Entries{}, errDown
	}
	return s.Source.ReadDir(ctx, dir)
}

func (s *testSource) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	if s.down.Load() || s.bad.Load() && version == "2" && file.Name != source.SuccessFile {
		return nil, errDown
	}
	isData := version != "" && file.Name != source.SuccessFile
	if isData && s.gate.Load() {
		waiting := filepath.Join(s.dir, "waiting")
		if err := os.WriteFile(waiting+".tmp", []byte(db+"/"+version+"/"+file.Name), 0o644); err != nil {
			return nil, err
		}
		if err := os.Rename(waiting+".tmp", waiting); err != nil && !errors.Is(err, os.ErrNotExist) { // another file's
			return nil, err
		}
		for s.gate.Load() {
			if err := sleep.For(ctx, time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	for isData && s.opened.Add(1) > 3 && s.planned.Load() {
		if err := sleep.For(ctx, time.Millisecond); err != nil {
			return nil, err
		}
	}
	return s.Source.Open(ctx, db, version, file, o)
}

// A barrier lets reading begin when it is opened.
type barrier struct {
	waiting chan string // a file that somebody wants to read
}

// shut makes all reading of data files wait until the result is called.
func (s *testSource) shut() (g *barrier, open func()) {
	g = &barrier{waiting: make(chan string, 1)}
	s.gate.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	var looking sync.WaitGroup
	looking.Go(func() {
		for sleep.For(ctx, time.Millisecond) == nil {
			if file, err := os.ReadFile(filepath.Join(s.dir, "waiting")); err == nil {
				g.waiting <- string(file)
				return
			}
		}
	})
	return g, func() {
		cancel()
		looking.Wait()
		s.gate.Store(false)
	}
}
