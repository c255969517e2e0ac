package version

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// sourceChanges adds, removes, breaks or repairs versions in the source.
func (w *world) sourceChanges() {
	v := fmt.Sprintf("%03d", 1+w.rnd.IntN(60))
	switch w.rnd.IntN(6) {
	case 0, 1, 2:
		if !slices.Contains(w.source, v) {
			w.source = append(w.source, v)
			slices.Sort(w.source)
			w.broken[v] = w.rnd.IntN(3) == 0
			if !w.disk[v] && v != w.current && v != w.served {
				w.bad[v] = w.gated && w.rnd.IntN(3) == 0
			}
		}
	case 3:
		if len(w.source) > 0 {
			i := w.rnd.IntN(len(w.source))
			w.source = slices.Delete(w.source, i, i+1)
		}
	case 4:
		if len(w.source) > 0 {
			v = w.source[w.rnd.IntN(len(w.source))]
			w.broken[v] = !w.broken[v]
		}
	}
}

// pinChanges pins or excludes versions, or takes that back.
func (w *world) pinChanges() {
	w.pinned = true
	any := func() string { return fmt.Sprintf("%03d", 1+w.rnd.IntN(60)) }
	if len(w.source) > 0 {
		any = func() string { return w.source[w.rnd.IntN(len(w.source))] }
	}
	switch w.rnd.IntN(5) {
	case 0:
		w.pin.Version = any()
	case 1:
		w.pin.Excluded = append(slices.Clone(w.pin.Excluded), any())
	case 2:
		if w.current != "" {
			w.pin.Excluded = append(slices.Clone(w.pin.Excluded), w.current)
		}
	default:
		w.pin = Pin{Approved: w.pin.Approved}
	}
}

// listed is the event of a look at the source.
func (w *world) listed() Listed {
	allowed := slices.DeleteFunc(slices.Clone(w.source), func(v string) bool { return !w.pin.Allows(v) })
	return Listed{Versions: allowed, Pin: w.pin, Keep: w.keep}
}

func (w *world) start() {
	for range w.rnd.IntN(20) {
		w.sourceChanges()
	}
	local := slices.Clone(w.source)
	local = slices.DeleteFunc(local, func(string) bool { return w.rnd.IntN(2) == 0 })
	for range w.rnd.IntN(3) {
		local = append(local, fmt.Sprintf("%03d", 1+w.rnd.IntN(60)))
	}
	slices.Sort(local)
	local = slices.Compact(local)
	for _, v := range local {
		w.disk[v] = true
		w.held[v] = w.rnd.IntN(3) > 0
	}
	if all := append(slices.Clone(w.source), local...); len(all) > 0 && w.rnd.IntN(2) == 0 {
		w.served = all[w.rnd.IntN(len(all))]
	}
	w.recorded = w.served
	w.feed(Start{Local: local, Served: w.served, Taken: w.served != "" && w.gated && len(local)%2 == 0, Pin: w.pin, Keep: w.keep})
	switch w.rnd.IntN(4) {
	case 0: // the source is being listed for a while
	case 1:
		w.feed(Unlisted{})
	default:
		w.feed(w.listed())
	}
}

// settle refreshes a few times and finishes all work. Every load that can succeed
// does, with every partition.
func (w *world) settle() {
	w.full = true
	w.toggleFull()
	w.solo = true
	for range 8 {
		for _, v := range sorted(w.live) {
			w.feed(w.seen(v))
		}
		if w.gone {
			w.feed(Gone{})
		} else {
			w.feed(w.listed())
			for _, v := range w.state.Entries {
				w.feed(Retry{v.Name})
			}
		}
		for range 1000 {
			if !w.endOne() {
				break
			}
		}
	}
}

func sorted(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

// endOne finishes one piece of work.
func (w *world) endOne() bool {
	lingers, closing, loads := sorted(w.lingers), sorted(w.closing), sorted(w.loads)
	switch {
	case len(lingers) > 0:
		delete(w.lingers, lingers[0])
		w.feed(Idle{lingers[0]})
	case len(closing) > 0:
		w.closed(closing[0])
	case len(loads) > 0:
		switch v := loads[0]; {
		case w.loads[v]:
			w.endLoad(v, "cancelled")
		case !w.planned[v]:
			w.planned[v] = true
			w.feed(Planned{v, w.rnd.IntN(5) == 0})
		case w.broken[v]:
			w.endLoad(v, "broken")
		default:
			w.endLoad(v, "")
		}
	default:
		return false
	}
	return true
}

// checkSettled checks the final state.
func (w *world) checkSettled() {
	if w.gone {
		if !w.state.Finished() || len(w.live)+len(w.disk)+len(w.loads) > 0 {
			w.fatalf("gone, but left are %v, live %v, on disk %v, loading %v", w.state, w.live, w.disk, w.loads)
		}
		return
	}
	current := w.state.Current
	want := w.state.Floor()
	for _, v := range w.listed().Versions {
		if v > want && !w.broken[v] && !w.bad[v] {
			want = v
		}
	}
	if current != want && want != "" {
		w.fatalf("current is %q, want %q; in the source %v, broken %v, pin %v", current, want, w.source, w.broken, w.pin)
	}
	kept, held := 0, 0
	for _, v := range w.state.Entries {
		if v.Status == Prepared && v.Held {
			held++
		} else if v.Status == Prepared {
			kept++
		} else if v.Status != Active && v.Status != Error {
			w.fatalf("%s ended as %v", v.Name, v.Status)
		}
	}
	if kept > max(0, w.keep-1) || held > 1 {
		w.fatalf("%d versions are kept and %d held: %v", kept, held, w.state)
	}
	for v := range w.disk {
		if _, known := w.state.Entry(v); !known {
			w.fatalf("%s was left on the disk", v)
		}
	}
	if !slices.IsSorted(w.answered) && !w.pinned {
		w.fatalf("answered from %v", w.answered)
	}
}

func TestRandomWalks(t *testing.T) {
	walks := 1000
	if testing.Short() {
		walks = 100
	}
	finished := 0
	for seed := range walks {
		w := newWorld(t, uint64(seed))
		w.trace = append(w.trace, fmt.Sprintf("seed %d", seed))
		w.start()
		for range 150 {
			if w.rnd.IntN(5) == 0 {
				w.sourceChanges()
				if seed%2 == 0 && w.rnd.IntN(4) == 0 {
					w.pinChanges()
				}
				w.feed(w.listed())
			} else if all := w.possible(); len(all) > 0 {
				all[w.rnd.IntN(len(all))]()
			}
		}
		if w.gone = w.rnd.IntN(5) == 0; w.gone {
			w.feed(Gone{})
		}
		w.settle()
		w.checkSettled()
		finished += len(w.answered)
	}
	if finished < walks {
		t.Errorf("only %d activations in %d walks", finished, walks)
	}
}
