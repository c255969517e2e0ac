package loadproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/internal/content"
	"sequins/load"
	"sequins/source"
	"sequins/source/local"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// role is the environment variable that makes the test binary something else: a load process, or one that
// pretends to be one.
const role = "SEQUINS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		goleak.VerifyTestMain(m)
	case "loader":
		os.Exit(Main(openLocal))
	case "node":
		beNode()
	default:
		pretend(os.Getenv(role))
	}
}

// openLocal opens a directory. Of one called hog, listing the files takes more memory than there is. The files of one called
// future have a time that a manifest cannot have.
func openLocal(_ context.Context, spec json.RawMessage) (source.Source, error) {
	var root string
	if err := json.Unmarshal(spec, &root); err != nil {
		return nil, err
	}
	src, err := local.New(root)
	if filepath.Base(root) == "hog" {
		return hog{src}, err
	}
	if filepath.Base(root) == "future" {
		return future{src}, err
	}
	return src, err
}

// unknown is the free space of a disk that cannot be measured.
func unknown() (int64, bool) { return 0, false }

type future struct{ source.Source }

func (f future) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	file.ModTime = time.Time{}
	return f.Source.Open(ctx, db, version, file, o)
}

func (f future) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	c, err := f.Source.Contents(ctx, db, version)
	for i := range c.Files {
		c.Files[i].ModTime = time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return c, err
}

type hog struct{ source.Source }

func (hog) Contents(context.Context, string, string) (source.Contents, error) {
	var held [][]byte
	for {
		piece := make([]byte, 16<<20)
		for i := 0; i < len(piece); i += 4096 {
			piece[i] = 1
		}
		held = append(held, piece)
		if len(held) > 1<<12 {
			return source.Contents{}, errors.New("64 GiB were to be had")
		}
	}
}

// pretend prints what is before the last word, and then does what that says.
func pretend(script string) {
	text, end, _ := strings.Cut(script, "|")
	fmt.Print(text)
	switch end {
	case "exit 0":
		os.Exit(0)
	case "exit 3":
		fmt.Fprintln(os.Stderr, "these are my last words")
		os.Exit(3)
	case "panic":
		panic("I cannot go on")
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "long line":
		piece := strings.Repeat("x", 1<<20)
		for {
			if _, err := fmt.Print(piece); err != nil {
				os.Exit(1)
			}
		}
	case "flood":
		for {
			if _, err := fmt.Print(`{"progress":{}}` + "\n"); err != nil {
				os.Exit(1)
			}
		}
	case "close":
		_ = os.Stdout.Close()
		for {
			time.Sleep(time.Hour) // unlike select {}, no deadlock for the runtime
		}
	case "record":
		f, err := os.Create(os.Getenv(role + "_FILE"))
		if err != nil {
			panic(err)
		}
		_, _ = io.Copy(f, os.Stdin)
		os.Exit(0)
	case "ignore": // everything but SIGKILL
		time.Sleep(time.Hour)
	default: // as a process does that is told to end
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}
}

func as(what string) func(context.Context) *exec.Cmd {
	return func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "/proc/self/exe")
		cmd.Env = append(os.Environ(), role+"="+what, "GORACE=atexit_sleep_ms=0")
		return cmd
	}
}

// A world is a source with version 1 of db, and a store.
type world struct {
	t        *testing.T
	root     string
	dir      string // of the store
	store    *store.Store
	launcher *Launcher
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, root: filepath.Join(t.TempDir(), "source"), dir: t.TempDir()}
	writeVersion(t, w.root, 4, 1000)
	local, err := store.Open(w.dir)
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, w.store.Close()) })
	w.store = local
	w.launcher = &Launcher{Source: w.root, Program: as("loader"), Free: unknown}
	return w
}

func writeVersion(t testing.TB, root string, files, records int) {
	t.Helper()
	for i := range files {
		path := filepath.Join(root, "db", "1", fmt.Sprintf("part-%05d", i))
		sequencefiles.WriteFile(t, path, sequencefiles.WriterOptions{}, func(add func(key, value string)) {
			for r := range records {
				add(fmt.Sprintf("key %d/%06d", i, r), "value")
			}
		})
	}
}

// onlyFirst leaves only one file, which is partition 0, whose block is begun at once.
func (w *world) onlyFirst() {
	w.t.Helper()
	for i := range 3 {
		expect.NoError(w.t, os.Remove(filepath.Join(w.root, fmt.Sprintf("db/1/part-%05d", i+1))))
	}
}

var testJob = Job{DB: "db", Input: content.Input{Name: "1"}, Options: load.Options{Partitioner: "string"}, MemoryLimit: 1 << 30}

// slowJob is one that takes hours.
func slowJob() Job {
	j := testJob
	j.Options.Throttle = 10 * time.Second
	return j
}

func (w *world) start(ctx context.Context, job Job) *Process {
	w.t.Helper()
	p, err := w.launcher.Start(ctx, job)
	expect.NoError(w.t, err)
	w.t.Cleanup(p.Close)
	return p
}

func (w *world) plan(p *Process) (store.Manifest, *store.Dir) {
	w.t.Helper()
	m, err := p.Plan()
	expect.NoError(w.t, err)
	dir, err := w.store.Create("db", m)
	expect.NoError(w.t, err)
	return m, dir
}

// left lists the files of the version's contents, temporary ones too.
func (w *world) left() (names []string) {
	w.t.Helper()
	inputs, err := w.store.Contents("db")
	expect.NoError(w.t, err)
	for _, in := range inputs {
		path := filepath.Join(w.dir, "data/db/1", in.Hash)
		for _, dir := range []string{path, filepath.Join(path, "tmp")} {
			entries, err := os.ReadDir(dir)
			if !errors.Is(err, fs.ErrNotExist) {
				expect.NoError(w.t, err)
			}
			for _, e := range entries {
				if e.Name() != "tmp" {
					names = append(names, e.Name())
				}
			}
		}
	}
	return names
}
