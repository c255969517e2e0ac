package version

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"sequins/internal/content"
)

// clone returns a copy of w in which nothing happens by chance.
func (w *world) clone() *world {
	c := *w
	c.calm, c.rnd, c.kill = true, rand.New(rand.NewPCG(1, 1)), func() {}
	for _, f := range []*flags{&c.broken, &c.bad, &c.disk, &c.loads, &c.planned, &c.live, &c.held, &c.remote, &c.refused, &c.lingers, &c.closing, &c.former} {
		*f = maps.Clone(*f)
	}
	c.trace, c.queue, c.answered = slices.Clone(w.trace), slices.Clone(w.queue), slices.Clone(w.answered)
	return &c
}

// killed returns a copy of w that has only what is durable: its process was killed, and has started again.
// The source and the other nodes are as in now.
func (w *world) killed(now *world) *world {
	c, old := w.clone(), w.state
	c.remote = maps.Clone(now.remote)
	c.loads, c.planned, c.live, c.lingers, c.closing = flags{}, flags{}, flags{}, flags{}, flags{}
	c.queue, c.answered, c.current, c.state = nil, nil, content.Input{}, state{}
	c.served, c.likely = w.recorded, false
	start := Start{Local: c.disk.sorted(), Served: c.served, Former: c.former.sorted(), Taken: old.Taken, Pin: old.Pin, Keep: old.Keep, Failures: slices.Clone(old.failures)}
	for v, held := range old.held {
		if held {
			start.Held = append(start.Held, v)
		}
	}
	for _, v := range old.Entries {
		if v.Failure.Reason != "" && v.Removal == Staying {
			start.Failures = append(start.Failures, failed{v.Input, v.Failure.Reason, v.Failure.Kind == Faulty})
		}
	}
	c.feed(start)
	switch {
	case now.state.Source == Known:
		c.feed(Listed{Inputs: now.state.Listed, Pin: now.state.Pin, Keep: now.keep})
	case now.state.Source == Away:
		c.feed(Unlisted{})
	}
	return c
}

// survives reports whether what is served would be served again after a restart: some of it can be read, or it is being decided
// yet. If nothing of it can be read, a node that runs keeps it until its load has ended, and one that starts looks for another.
// A version that is being removed, and that the source has or that was served, is found on the disk by a node that starts, and is not removed if it is
// needed then.
// While the pin does not allow what is served, the version that is ready first is served next: that is left to chance. So is a rollback
// that cannot be recorded, or a version that was served while that could not be: a restart does not know of it. And so is what is found when it is opened.
func (w *world) survives() bool {
	if !w.pin.Allows(w.recorded.Name) {
		return false
	}
	for _, v := range w.state.Entries {
		if v.Former && !w.former[v.Input] {
			return false
		}
		if v.Removal != Staying && w.readable(v.Input) && (slices.Contains(w.source, v.Input) || w.former[v.Input]) {
			return false
		}
	}
	_, loading := w.loads[w.recorded]
	v, _ := w.state.Entry(w.recorded)
	undecided := w.state.Current.Name == "" && w.state.Before() == w.recorded && !loading && v.Work != Unopened
	return w.recorded.Name != "" && (undecided || w.state.Current == w.recorded && w.readable(w.recorded))
}

// outcome is what is there at the end of a quiet period.
type outcome struct {
	Current content.Input
	Held    []content.Input // that and newer inputs of the source, as far as this node has all partitions
}

func (w *world) outcome() outcome {
	w.settle()
	w.checkSettled()
	o := outcome{Current: w.state.Current}
	for _, v := range w.listed().Inputs {
		if w.held[v] && w.disk[v] && v.Name >= o.Current.Name {
			o.Held = append(o.Held, v)
		}
	}
	return o
}

// TestKilled kills the process after the actions of random walks. What is served in the end, and what has been loaded for it, is
// the same as if it had not been killed.
func TestKilled(t *testing.T) {
	all := walks(50)
	compared := 0
	for seed := range all {
		w := newWorld(t, uint64(seed))
		var kills []*world
		w.kill = func() {
			if w.survives() {
				kills = append(kills, w.clone())
			}
		}
		w.start()
		for range 100 {
			if len(kills) > 0 {
				w.compare(kills)
				compared += len(kills)
				kills = nil
			}
			w.step(seed%2 == 0)
		}
	}
	if compared < 5*all {
		t.Errorf("only %d comparisons in %d walks", compared, all)
	}
}

// compare compares what becomes of w with what becomes of it if its process is killed at some points.
func (w *world) compare(kills []*world) {
	w.t.Helper()
	want := w.clone().outcome()
	for _, k := range kills {
		k = k.killed(w)
		if got := k.outcome(); got.Current != want.Current || !slices.Equal(got.Held, want.Held) {
			k.fatalf("the outcome is %v, and %v if the process is killed", want, got)
		}
	}
}
