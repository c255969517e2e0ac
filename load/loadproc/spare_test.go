package loadproc

import (
	"context"
	"syscall"
	"testing"

	"sequins/test/expect"
)

// load carries out a job from its start to its end, and returns the process.
func (w *world) load(job Job) *Process {
	w.t.Helper()
	p := w.start(w.t.Context(), job)
	m, dir := w.plan(p)
	want := make([]int, m.Partitions)
	for i := range want {
		want[i] = i
	}
	expect.NoError(w.t, p.Claim(m, Room{Want: want, Held: make([]bool, m.Partitions)}))
	expect.NoError(w.t, p.Load(dir, want, func(News) {}))
	if complete, err := dir.Complete(); err != nil || len(complete) != len(want) {
		w.t.Errorf("complete are %v of %v: %v", complete, want, err)
	}
	p.Close()
	p.Close()
	expect.NoError(w.t, w.store.Remove("db", m.Content().Input))
	return p
}

// loads carries out two jobs, and reports whether one process did.
func (w *world) reuses(first, second Job, between func(*Process)) bool {
	w.t.Helper()
	one := w.load(first)
	if between != nil {
		between(one)
	}
	return w.load(second).child == one.child
}

func TestReuse(t *testing.T) {
	other := testJob
	other.MemoryLimit *= 2
	throttled := testJob
	throttled.Options.Throttle = 1
	for name, c := range map[string]struct {
		first, second Job
		off           bool
		between       func(*Process)
		want          bool
	}{
		"the same":             {testJob, testJob, false, nil, true},
		"another job":          {testJob, throttled, false, nil, true},
		"another memory limit": {testJob, other, false, nil, false},
		"disabled":             {testJob, testJob, true, nil, false},
		"its time is over":     {testJob, testJob, false, func(p *Process) { p.reap() }, false},
		"it has died": {testJob, testJob, false, func(p *Process) {
			_ = p.cmd.Process.Signal(syscall.SIGKILL)
			expect.Eventually(t, "its input is closed", func() bool { return p.order(order{}) != nil })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.launcher.Reuse = !c.off
			defer w.launcher.Close()
			if got := w.reuses(c.first, c.second, c.between); got != c.want {
				t.Errorf("one process for both: %v", got)
			}
			if n := len(w.launcher.running); n != 0 {
				t.Errorf("%d processes share the bandwidth", n)
			}
		})
	}
}

// A load that has failed or was large ends its process, and so does the end of its context.
func TestNotReused(t *testing.T) {
	w := newWorld(t)
	w.launcher.Reuse = true
	defer w.launcher.Close()
	failed := w.start(t.Context(), testJob)
	_, dir := w.plan(failed)
	w.onlyFirst()
	if err := failed.Load(dir, []int{0, 1, 2, 3}, func(News) {}); err == nil {
		t.Fatal("it loads files that are gone")
	}
	ctx, cancel := context.WithCancel(t.Context())
	canceled := w.start(ctx, testJob)
	canceled.ended = true
	cancel()
	large := w.start(t.Context(), testJob)
	large.ended, large.read = true, maxSmall+1
	for name, p := range map[string]*Process{"failed": failed, "canceled": canceled, "large": large} {
		p.Close()
		if p.released || p.cmd.ProcessState == nil {
			t.Errorf("%s: the process goes on", name)
		}
	}
}

// Close ends the processes that wait, and none wait afterwards.
func TestCloseOfLauncher(t *testing.T) {
	w := newWorld(t)
	w.launcher.Reuse = true
	waiting := w.load(testJob)
	w.launcher.Close()
	if waiting.cmd.ProcessState == nil {
		t.Error("it has not exited")
	}
	if late := w.load(testJob); late.released || late.cmd.ProcessState == nil {
		t.Error("one waits after Close")
	}
	w.launcher.Close()
}

// A small load among as many as there are processors has one worker.
func TestWorkers(t *testing.T) {
	l := &Launcher{running: map[*Process]bool{}}
	p := &Process{launcher: l, source: maxSmall}
	l.running[p] = true
	if n := p.workers(); n != 0 {
		t.Errorf("alone: %d", n)
	}
	for range 1000 {
		l.running[&Process{}] = true
	}
	if n := p.workers(); n != 1 {
		t.Errorf("among others: %d", n)
	}
	p.source = maxSmall + 1
	if n := p.workers(); n != 0 {
		t.Errorf("large: %d", n)
	}
}
