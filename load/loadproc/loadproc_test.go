package loadproc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/blocks"
	"sequins/load"
	"sequins/observe/metrics"
	"sequins/source"
	"sequins/source/local"
	"sequins/store"
	"sequins/test/expect"
)

// A load, from the plan to the blocks.
func TestLoad(t *testing.T) {
	w := newWorld(t)
	w.launcher.Metrics = metrics.New().Load
	p := w.start(t.Context(), testJob)
	m, dir := w.plan(p)
	if m.DB != "db" || m.Version != "1" || m.Partitions != 4 || len(m.Files) != 4 || m.Partitioner != "string" {
		t.Errorf("planned %+v", m)
	}
	var published []int
	var last load.Snapshot
	expect.NoError(t, p.Load(dir, []int{0, 1, 3}, func(n News) {
		published = append(published, n.Published...)
		last = n.Snapshot
	}))
	slices.Sort(published)
	complete, err := dir.Complete()
	expect.NoError(t, err)
	if want := []int{0, 1, 3}; !slices.Equal(published, want) || !slices.Equal(complete, want) {
		t.Errorf("published %v, complete are %v", published, complete)
	}
	if last.Records != 4000 || last.PartitionsDone != 3 || last.Partitions != 3 || last.FilesDone != 4 {
		t.Errorf("in the end: %+v", last)
	}
	if names := w.left(); len(names) != 4 { // three blocks and the manifest
		t.Errorf("left: %v", names)
	}
	p.Close()

	// What is there is not loaded again, and counts.
	p = w.start(t.Context(), testJob)
	_, dir = w.plan(p)
	expect.NoError(t, p.Load(dir, []int{0, 1, 2, 3}, func(n News) { last = n.Snapshot }))
	if last.Partitions != 4 || last.PartitionsDone != 4 {
		t.Errorf("the rest: %+v", last)
	}
}

// A failure has the text and the class that it has in the process.
func TestFailure(t *testing.T) {
	w := newWorld(t)
	w.launcher.Source = w.root
	job := testJob
	job.Input.Name = "none"
	_, err := w.start(t.Context(), job).Plan()
	if err == nil || !strings.Contains(err.Error(), "version none of db") || load.Outcome(err) != "other" {
		t.Errorf("a version that is not there: %v", err)
	}
	job = testJob
	job.Options.RequireSuccess = true
	if _, err = w.start(t.Context(), job).Plan(); !errors.Is(err, load.ErrIncomplete) || load.Outcome(err) != "incomplete" {
		t.Errorf("a version without _SUCCESS: %v", err)
	}
	job.Options = load.Options{Partitioner: "hadoop"}
	p := w.start(t.Context(), job)
	_, dir := w.plan(p)
	err = p.Load(dir, []int{0, 1, 2, 3}, func(News) {})
	var wrong *load.PartitionError
	if !errors.As(err, &wrong) || !strings.Contains(string(wrong.Key), "key ") || load.Outcome(err) != "partitioner" {
		t.Errorf("a record in the wrong file: %v", err)
	}
	if names := w.left(); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
	job = testJob
	job.Input.Hash = otherHash
	if _, err = w.start(t.Context(), job).Plan(); load.Outcome(err) != "source changed" || load.Faulty(err) || !strings.Contains(err.Error(), otherHash) {
		t.Errorf("another input: %v", err)
	}
}

// A job is loaded as the node has listed it, and blocks say what they were made from.
func TestInput(t *testing.T) {
	w := newWorld(t)
	w.launcher.Source = w.root
	src, err := local.New(w.root)
	expect.NoError(t, err)
	listing, err := source.List(t.Context(), src, "db", "1", false)
	expect.NoError(t, err)
	job := testJob
	job.Input = job.Options.Input("1", listing)
	p := w.start(t.Context(), job)
	m, dir := w.plan(p)
	if m.Content().Input != job.Input {
		t.Errorf("%v is planned of %v", m.Content(), job.Input)
	}
	expect.NoError(t, p.Load(dir, []int{0, 1, 2, 3}, func(News) {}))
	p.Close()
	b, err := blocks.Open(dir.BlockPath(3))
	expect.NoError(t, err)
	if made := b.Properties().MadeFrom; len(made) != 80 {
		t.Errorf("the block was made from %q", made)
	}
	expect.NoError(t, b.Close())

	job.Options = job.Options.PlannedBy(m) // as from another node
	job.Options.Manifest.Input, job.Input.Hash = otherHash, otherHash
	planned, err := w.start(t.Context(), job).Plan()
	if err != nil || planned.Content().Input != job.Input {
		t.Errorf("%v is planned by a manifest of %v: %v", planned.Content(), job.Input, err)
	}
}

// A process that plans another input than it was ordered to has gone wrong.
func TestPlanOfAnotherInput(t *testing.T) {
	w := newWorld(t)
	w.launcher.Program = as(`{"planned":` + manifestOf("1") + "}\n|")
	job := testJob
	job.Input.Hash = "0123456789abcdef"
	if _, err := w.start(t.Context(), job).Plan(); !errors.Is(err, load.ErrDied) || !strings.Contains(err.Error(), "input "+otherHash) {
		t.Errorf("planned: %v", err)
	}
}

const otherHash = "fedcba9876543210"

// A load that is cancelled ends at once, whatever it does, and leaves nothing.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	w.onlyFirst()
	ctx, cancel := context.WithCancel(t.Context())
	job := slowJob()
	job.Options.Partitioner = "auto"
	p := w.start(ctx, job)
	_, dir := w.plan(p)
	err := p.Load(dir, []int{0}, func(News) {
		if len(w.left()) > 1 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if names := w.left(); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
	// While it waits for the go-ahead, and before it has said anything.
	p = w.start(t.Context(), testJob)
	w.plan(p)
	p.Close()
	p = w.start(t.Context(), testJob)
	p.Close()
	if p.cmd.ProcessState == nil {
		t.Error("nobody has waited for the process")
	}
}

// A process that cannot be started is a load that has died.
func TestCannotBeStarted(t *testing.T) {
	w := newWorld(t)
	w.launcher.Program = func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "/no/such/program") }
	if _, err := w.launcher.Start(t.Context(), testJob); !errors.Is(err, load.ErrDied) || !strings.Contains(err.Error(), "/no/such/program") {
		t.Error(err)
	}
}

// What changes while it is loaded is not published.
func TestChangedWhileLoading(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"overwritten": func(path string) error {
			data, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, data, 0o644))
		},
		"appended": func(path string) error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("more")
			return errors.Join(err, f.Close())
		},
		"removed": os.Remove,
		"joined":  func(path string) error { return os.WriteFile(path+"0", nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.start(t.Context(), testJob)
			_, dir := w.plan(p)
			expect.NoError(t, change(filepath.Join(w.root, "db/1/part-00002")))
			err := p.Load(dir, []int{0, 1}, func(News) {})
			if !errors.Is(err, source.ErrChanged) && !errors.Is(err, fs.ErrNotExist) && name != "removed" {
				t.Errorf("%v: is not source.ErrChanged", err)
			}
			if complete, cerr := dir.Complete(); err == nil || cerr != nil || len(complete) > 0 {
				t.Errorf("%v: complete are %v, %v", err, complete, cerr)
			}
		})
	}
}

// Processes share the bandwidth, and hear of it when their number or the limit changes.
func TestBandwidth(t *testing.T) {
	w := newWorld(t)
	var files []string
	w.launcher.Program = func(ctx context.Context) *exec.Cmd {
		files = append(files, filepath.Join(t.TempDir(), "heard"))
		cmd := as("|record")(ctx)
		cmd.Env = append(cmd.Env, role+"_FILE="+files[len(files)-1])
		return cmd
	}
	w.launcher.SetBandwidth(1200)
	one := w.start(t.Context(), testJob)
	two := w.start(t.Context(), testJob)
	w.launcher.SetBandwidth(600)
	two.Close()
	w.launcher.SetBandwidth(0)
	one.Close()
	for i, want := range []string{"[1200 600 300 600 0]", "[600 300]"} {
		if got := fmt.Sprint(heard(t, files[i])); got != want {
			t.Errorf("process %d has heard of %s, want %s", i, got, want)
		}
	}
}

// heard returns the bandwidths in a file of orders.
func heard(t *testing.T, path string) (all []float64) {
	t.Helper()
	f, err := os.Open(path)
	expect.NoError(t, err)
	defer f.Close()
	lines := newLineReader(f)
	var first order
	expect.NoError(t, lines.next(&first))
	all = append(all, first.Job.Bandwidth)
	for {
		var o order
		err := lines.next(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		expect.NoError(t, err)
		all = append(all, *o.Bandwidth)
	}
}

// lastWords keep the beginning, whatever the pieces.
func TestLastWords(t *testing.T) {
	if got := new(lastWords).quote(); got != "" {
		t.Errorf("nothing is %q", got)
	}
	for _, n := range []int{1, 100, keptWords, keptWords + 1, 20_000} {
		var text strings.Builder
		for i := 0; text.Len() < n; i++ {
			fmt.Fprintf(&text, "%d.", i)
		}
		all := text.String()
		for _, piece := range []int{1, 7, 1000, 4000, 100_000} {
			var w lastWords
			for rest := all; rest != ""; {
				part := rest[:min(piece, len(rest))]
				rest = rest[len(part):]
				if k, err := io.WriteString(&w, part); k != len(part) || err != nil {
					t.Fatal(k, err)
				}
			}
			want := all[:min(len(all), keptWords)]
			if got := w.quote(); got != "; its last words: "+want {
				t.Fatalf("%d bytes in pieces of %d: %q", n, piece, got)
			}
		}
	}
}

// Of a process that has no memory left, no calls of the program are shown.
func TestLastWordsOfMemory(t *testing.T) {
	w := lastWords{[]byte("fatal error: runtime: out of memory\n\nruntime stack:\nruntime.throw(...)")}
	if got := w.quote(); got != "; out of memory: it needs more than [load] memory_limit" {
		t.Error(got)
	}
}

// beNode is a node that begins a load that takes hours, tells the number of its process, and waits.
func beNode() {
	local, err := store.Open(os.Getenv(role + "_STORE"))
	if err != nil {
		panic(err)
	}
	l := &Launcher{Source: os.Getenv(role + "_SOURCE"), Program: as("loader"), Free: unknown}
	job := slowJob()
	job.Options.Partitioner = "auto"
	p, err := l.Start(context.Background(), job)
	if err != nil {
		panic(err)
	}
	m, err := p.Plan()
	if err != nil {
		panic(err)
	}
	dir, err := local.Create("db", m)
	if err != nil {
		panic(err)
	}
	told := false
	err = p.Load(dir, []int{0}, func(n News) {
		if !told && n.Snapshot.Partitions > 0 {
			told = true
			fmt.Println(p.cmd.Process.Pid)
		}
	})
	panic(err)
}

// A node that is killed leaves nothing that writes: its load process ends with it, and what that has written is gone when
// the store is swept.
func TestNodeIsKilled(t *testing.T) {
	w := newWorld(t)
	expect.NoError(t, w.store.Close())
	w.onlyFirst()
	cmd := as("node")(t.Context())
	cmd.Env = append(cmd.Env, role+"_STORE="+w.dir, role+"_SOURCE="+w.root)
	out, err := cmd.StdoutPipe()
	expect.NoError(t, err)
	expect.NoError(t, cmd.Start())
	pid := 0
	_, err = fmt.Fscanln(bufio.NewReader(out), &pid)
	expect.NoError(t, err)
	expect.Eventually(t, "the load has begun to write", func() bool { return len(w.left()) > 1 })
	expect.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	expect.Eventually(t, "the load process has ended", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z") || strings.Contains(string(stat), ") X")
	})
	local, err := store.Open(w.dir)
	expect.NoError(t, err)
	w.store = local
	expect.NoError(t, local.Sweep("db"))
	if names := w.left(); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}
