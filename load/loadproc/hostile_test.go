package loadproc

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sequins/load"
	"sequins/store"
	"sequins/test/expect"
)

// Whatever a process says, or however it ends, the load ends with an error that says so, and soon.
func TestHostileProcess(t *testing.T) {
	plan := `{"planned":` + manifestOf("1") + "}\n"
	tests := map[string]struct {
		script string
		want   []string
	}{
		"ends at once":         {"|exit 0", []string{"exit status 0"}},
		"exit code":            {"|exit 3", []string{"exit status 3", "these are my last words"}},
		"panics":               {"|panic", []string{"exit status 2", "panic: I cannot go on"}},
		"is killed":            {"|kill", []string{"signal: killed"}},
		"truncated line":       {`{"planned":{"form|exit 0`, []string{"not understood"}},
		"not JSON":             {"hello\n|", []string{"not understood"}},
		"unknown event":        {"{\"plan\":1}\n|", []string{"not understood", `"plan"`}},
		"more than one":        {"{\"progress\":{}}{\"progress\":{}}\n|", []string{"more behind it"}},
		"nothing in it":        {"{}\n|", []string{"something else than its plan"}},
		"ended without a plan": {"{\"ended\":{}}\n|", []string{"something else than its plan"}},
		"another version":      {`{"planned":` + manifestOf("2") + "}\n|", []string{"version 2 of db"}},
		"a damaged manifest":   {`{"planned":{"format_version":5,"crc32c":"00000000","manifest":{}}}` + "\n|", []string{"checksum"}},
		"closes its output":    {"|close", []string{"signal: killed"}},
		"an endless line":      {"|long line", []string{"a line of more than"}},

		"ends with the plan":      {plan + "|exit 3", []string{"exit status 3", "last words"}},
		"killed with the plan":    {plan + "|kill", []string{"signal: killed"}},
		"plans again":             {plan + plan + "|", []string{"something else than how far it is"}},
		"publishes what is not":   {plan + `{"progress":{},"publish":[0]}` + "\n|", []string{"publishing blocks", "no such file"}},
		"publishes what can't be": {plan + `{"progress":{},"publish":[-1]}` + "\n|", []string{"partition -1 of 3"}},
		"says nothing":            {"|", []string{"said nothing"}},
		"nothing after the plan":  {plan + "|ignore", []string{"said nothing"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.launcher.Program = as(test.script)
			p := w.start(t.Context(), testJob)
			if strings.Contains(test.want[0], "nothing") {
				p.silence = 100 * time.Millisecond
			}
			m, err := p.Plan()
			if strings.HasPrefix(test.script, plan) && p.silence == silence {
				expect.NoError(t, err)
			}
			if err == nil {
				var dir *store.Dir
				dir, err = w.store.Create("db", m)
				expect.NoError(t, err)
				err = p.Load(dir, []int{0, 1}, func(News) {})
			}
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%.300v: does not say %s", err, want)
				}
			}
			if !strings.Contains(test.script, "publish") && !errors.Is(err, load.ErrDied) {
				t.Errorf("%v: is not load.ErrDied", err)
			}
			p.Close()
			if p.cmd.ProcessState == nil {
				t.Error("nobody has waited for the process")
			}
		})
	}
}

func manifestOf(version string) string {
	m := store.Manifest{DB: "db", Version: version, Input: otherHash, Format: "sequencefile", Partitions: 3, Partitioner: "string"}
	data, err := m.MarshalJSON()
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(data))
}

// A process that talks without end is listened to until the load is cancelled, and ends then.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	w.launcher.Program = as(`{"planned":` + manifestOf("1") + "}\n|flood")
	ctx, cancel := context.WithCancel(t.Context())
	p := w.start(ctx, testJob)
	_, dir := w.plan(p)
	heard := 0
	err := p.Load(dir, []int{0}, func(News) {
		if heard++; heard == 10_000 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A process that does not end when it is told to is killed.
func TestStubbornProcess(t *testing.T) {
	w := newWorld(t)
	w.launcher.Program = as("|ignore")
	p := w.start(t.Context(), testJob)
	p.cmd.WaitDelay = 100 * time.Millisecond
	p.Close()
	if p.cmd.ProcessState == nil || !strings.Contains(p.cmd.ProcessState.String(), "killed") {
		t.Errorf("the process: %v", p.cmd.ProcessState)
	}
}

// runtimesWords are those of the Go runtime: the second where it is the runtime's own memory that cannot be had.
var runtimesWords = regexp.MustCompile("out of memory|cannot allocate memory")

// A process that needs more memory than it may have ends, with the words of the Go runtime.
func TestOutOfMemory(t *testing.T) {
	if raceDetector {
		return // the limit does not hold
	}
	w := newWorld(t)
	root := filepath.Join(filepath.Dir(w.root), "hog")
	expect.NoError(t, os.Rename(w.root, root))
	w.launcher.Source = root
	job := testJob
	job.MemoryLimit = 256 << 20
	_, err := w.start(t.Context(), job).Plan()
	if !errors.Is(err, load.ErrDied) || !strings.Contains(err.Error(), "exit status 2") || !runtimesWords.MatchString(err.Error()) {
		t.Errorf("%.400v", err)
	}
	if err != nil && len(err.Error()) > keptWords+200 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

// A plan that cannot be written down is an error: nobody waits for it.
func TestUnwritablePlan(t *testing.T) {
	w := newWorld(t)
	root := filepath.Join(filepath.Dir(w.root), "future")
	expect.NoError(t, os.Rename(w.root, root))
	w.launcher.Source = root
	_, err := w.start(t.Context(), testJob).Plan()
	if err == nil || !strings.Contains(err.Error(), "of the year 12000") || errors.Is(err, load.ErrDied) {
		t.Error(err)
	}
}

// What a load process hears that it does not understand ends it.
func TestHostileNode(t *testing.T) {
	for _, in := range []string{"", "{", "x\n", `{"nonsense":1}` + "\n", "[]\n", `{"job":{"memory_limit":"much"}}` + "\n", `{"bandwidth":5}` + "\n"} {
		w := newWorker(io.Discard, openLocal)
		if err := w.run(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), "reading the job") {
			t.Errorf("the job %q: %v", in, err)
		}
	}
	for _, in := range []string{"", "{", "x\n", `{"bandwidth":"a"}` + "\n", `{"bandwidth":5}` + "\n" + `{"load":3}` + "\n"} {
		code := -1
		w := newWorker(io.Discard, nil)
		w.exit = func(c int) { code = c }
		w.listen(newLineReader(strings.NewReader(in)))
		if code != 1 {
			t.Errorf("the order %q: exit code %d", in, code)
		}
	}
}
