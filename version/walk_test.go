package version

import (
	"flag"
	"slices"
	"testing"

	"sequins/internal/content"
)

func (w *world) start() {
	for range w.rnd.IntN(20) {
		w.sourceChanges()
	}
	var local []content.Input
	for _, v := range w.source {
		if w.rnd.IntN(2) == 0 {
			local = append(local, v)
		}
	}
	for range w.rnd.IntN(3) {
		local = append(local, w.anyInput())
	}
	for range w.rnd.IntN(2) { // another input of a version of the source
		if len(w.source) > 0 {
			local = append(local, in(w.source[w.rnd.IntN(len(w.source))].Name+"~f"))
		}
	}
	for _, v := range local {
		w.disk[v] = true
		w.held[v] = w.rnd.IntN(3) > 0
	}
	if all := append(slices.Clone(w.source), w.disk.sorted()...); len(all) > 0 && w.rnd.IntN(2) == 0 {
		w.served = all[w.rnd.IntN(len(all))]
		w.recorded = w.served
	} else if len(local) > 0 && w.rnd.IntN(3) == 0 {
		w.likely = true
		w.served = slices.MaxFunc(w.disk.sorted(), func(a, b content.Input) int { return compareNames(a, b) })
	}
	if taken := w.anyInput(); taken.Name > w.served.Name && w.rnd.IntN(3) == 0 {
		w.taken = taken
	}
	var failures []failed
	for _, v := range append(slices.Clone(w.source), w.disk.sorted()...) {
		if w.rnd.IntN(8) == 0 {
			failures = append(failures, failed{v, "it failed before the restart", w.broken[v]})
			w.refused[v] = true
		}
	}
	w.feed(Start{Local: w.disk.sorted(), Served: w.served, Likely: w.likely, Taken: w.taken, Pin: w.pin, Keep: w.keep, Failures: failures})
	switch w.rnd.IntN(4) {
	case 0: // the source is being listed for a while
	case 1:
		w.feed(Unlisted{})
	default:
		w.feed(w.listed())
	}
}

func compareNames(a, b content.Input) int {
	switch {
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return 0
}

// settle refreshes a few times and finishes all work. Every load that can succeed
// does, with every partition.
func (w *world) settle() {
	w.full = true
	w.toggleFull()
	w.solo = true
	for round := range 8 {
		w.calm = w.calm || round == 4
		for _, v := range w.live.sorted() {
			w.feed(w.seen(v))
		}
		if w.gone {
			w.feed(Left{})
		} else {
			w.feed(w.listed())
			for _, v := range w.state.Entries {
				w.feed(Retry{v.Input})
			}
		}
		for steps := 0; w.endOne(); steps++ {
			if steps > 1000 {
				w.fatalf("the work has no end")
			}
		}
	}
}

// endOne finishes one piece of work.
func (w *world) endOne() bool {
	lingers, closing, loads := w.lingers.sorted(), w.closing.sorted(), w.loads.sorted()
	switch {
	case len(lingers) > 0:
		delete(w.lingers, lingers[0])
		w.feed(IsIdle{lingers[0]})
	case len(closing) > 0:
		w.closed(closing[0])
	case len(loads) > 0:
		switch v := loads[0]; {
		case w.loads[v]:
			w.endLoad(v, "cancelled")
		case !w.planned[v]:
			w.plan(v, w.chance(5))
		case w.broken[v]:
			w.endLoad(v, "broken")
		case w.calm && !slices.Contains(w.source, v) && !w.readable(v) && v != w.taken:
			w.endLoad(v, "no node has it")
		default:
			w.endLoad(v, "")
		}
	default:
		return false
	}
	return true
}

// step lets something happen.
func (w *world) step(pins bool) {
	if all := w.live.sorted(); len(all) > 0 && w.rnd.IntN(10) == 0 {
		w.feed(Waits{all[w.rnd.IntN(len(all))]})
	}
	if w.rnd.IntN(5) == 0 {
		w.sourceChanges()
		if pins && w.rnd.IntN(4) == 0 {
			w.pinChanges()
		}
		w.feed(w.listed())
	} else if all := w.possible(); len(all) > 0 {
		all[w.rnd.IntN(len(all))]()
	}
}

var more = flag.Int("more", 1, "how many times as many random walks to take")

func walks(full int) int {
	if testing.Short() {
		return full / 10
	}
	return full * *more
}

func TestRandomWalks(t *testing.T) {
	all := walks(300)
	finished, steps := 0, map[[2]Status]bool{}
	for seed := range all {
		w := newWorld(t, uint64(seed))
		w.steps = steps
		w.start()
		for range 150 {
			w.step(seed%2 == 0)
		}
		if w.gone = w.rnd.IntN(5) == 0; w.gone {
			w.feed(Left{})
		}
		w.settle()
		w.checkSettled()
		finished += len(w.answered)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if finished < all {
		t.Errorf("only %d activations in %d walks", finished, all)
	}
	for from, to := range successors {
		for _, to := range to {
			if !steps[[2]Status{from, to}] && !testing.Short() {
				t.Errorf("no walk has gone from %v to %v", from, to)
			}
		}
	}
}
