package version

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// world simulates a node and its source: it carries out actions, fails on invalid
// ones, and generates the possible next events.
type world struct {
	t     *testing.T
	rnd   *rand.Rand
	solo  bool
	state State
	trace []string

	source   []string        // versions in the source
	broken   map[string]bool // versions whose loads fail
	bad      map[string]bool // versions that a gate holds once they are complete, until somebody approves them
	disk     map[string]bool
	loads    map[string]bool // running; true if cancelled
	planned  map[string]bool // running loads that have planned
	live     map[string]bool
	held     map[string]bool // all partitions are on this node
	lingers  map[string]bool
	closing  map[string]bool
	current  string
	answered []string // every version that was ever activated
	queue    []Event  // answers, delivered before other events
	gone     bool
	full     bool   // the disk: no other version can be recorded than that which is
	recorded string // version that a restart would serve
	pin      Pin
	pinned   bool // pin has changed
	keep     int
	gated    bool   // some versions are bad
	served   string // version that was active before the restart at the start of the walk
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), broken: map[string]bool{}, bad: map[string]bool{}, disk: map[string]bool{},
		loads: map[string]bool{}, planned: map[string]bool{}, live: map[string]bool{}, held: map[string]bool{},
		lingers: map[string]bool{}, closing: map[string]bool{}}
	w.solo = w.rnd.IntN(2) == 0
	w.keep = w.rnd.IntN(4)
	w.gated = seed%3 == 0
	return w
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.trace[max(0, len(w.trace)-40):] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

func (w *world) seen(v string) Seen {
	judged := w.bad[v] && w.held[v] && v != w.current && v != w.served
	unjudged := !judged && v != w.current && v != w.served && w.rnd.IntN(10) == 0
	replicated := !unjudged && (w.held[v] && w.solo || !w.solo && w.rnd.IntN(4) == 0) && (judged || !w.bad[v])
	return Seen{v, w.held[v], replicated, replicated || w.held[v] || w.rnd.IntN(2) == 0, replicated || w.held[v] && w.rnd.IntN(2) == 0, judged, unjudged}
}

// feed passes an event to the machine and carries out the actions, with all
// immediate answers.
func (w *world) feed(e Event) {
	w.queue = append(w.queue, e)
	for len(w.queue) > 0 {
		e := w.queue[0]
		w.queue = w.queue[1:]
		before := w.state
		next, actions := Next(w.state, e)
		if v := activated(actions); v != "" && w.full && v != w.recorded {
			w.state.Unrecorded = true
			next, actions = Next(w.state, e)
		}
		w.state = next
		w.trace = append(w.trace, fmt.Sprintf("%T%v → %s | %v", e, e, describe(actions), next))
		w.checkStates(before, next, e)
		for _, a := range actions {
			w.carryOut(a)
		}
		w.check()
	}
}

// toggleFull fills or frees the disk, and tries again to record a version.
func (w *world) toggleFull() {
	w.full, w.state.Unrecorded = !w.full, false
	for _, v := range sorted(w.live) {
		w.feed(w.seen(v))
	}
}

func activated(actions []Action) string {
	for _, a := range actions {
		if a.Op == Activate {
			return a.Version
		}
	}
	return ""
}

func (w *world) answer(e Event) { w.queue = append(w.queue, e) }

func (w *world) carryOut(a Action) {
	v := a.Version
	if _, known := w.state.Entry(v); !known {
		w.fatalf("%v: of a version that is forgotten", a)
	}
	switch a.Op {
	case Open:
		w.must(a, !w.live[v])
		if w.held[v] && w.disk[v] || !w.solo && w.rnd.IntN(3) == 0 {
			w.live[v] = true
			w.answer(w.seen(v))
		} else {
			w.answer(Absent{v})
		}
	case Load:
		_, running := w.loads[v]
		w.must(a, !w.state.Looking && !running && !w.closing[v] && !w.lingers[v])
		w.loads[v], w.disk[v] = false, true
	case Prepare:
		w.must(a, w.planned[v] && v != w.current && !w.closing[v])
		w.live[v], w.held[v] = true, false
		w.answer(w.seen(v))
	case Activate:
		first := len(w.answered) == 0
		w.must(a, w.live[v] && (v > w.current || a.Back && !w.pin.Allows(w.current)) && v != w.current && (!w.solo || w.held[v] || first && v == w.served))
		w.must(a, !w.state.Looking || v == w.served || !w.pin.Allows(w.served))
		w.must(a, !w.full || v == w.recorded)
		w.must(a, !w.bad[v] || v == w.served)
		w.current, w.recorded = v, v
		w.answered = append(w.answered, v)
	case SetAside:
		w.must(a, w.live[v])
		w.held[v] = false
		w.answer(w.seen(v))
	case Cancel:
		cancelled, running := w.loads[v]
		w.must(a, running && !cancelled)
		w.loads[v] = true
	case Retire:
		w.must(a, w.live[v] && !w.lingers[v] && !w.closing[v] && v != w.current)
		w.lingers[v] = true
	case Revive:
		w.must(a, w.lingers[v] && (v > w.current || !w.pin.Allows(w.current)) && slices.Contains(w.state.Listed, v))
		delete(w.lingers, v)
	case Close:
		w.must(a, w.live[v] && !w.closing[v] && (v != w.current || w.state.Gone))
		delete(w.lingers, v)
		w.closing[v] = true
	case Delete:
		_, running := w.loads[v]
		w.must(a, !running && !w.live[v])
		if w.rnd.IntN(10) == 0 {
			w.answer(Deleted{v, "busy"})
			return
		}
		delete(w.disk, v)
		delete(w.held, v)
		w.answer(Deleted{v, ""})
	}
}

func (w *world) must(a Action, ok bool) {
	w.t.Helper()
	if !ok {
		w.fatalf("%v is invalid in this state", a)
	}
}

// successors are the transitions listed at the Status constants.
var successors = map[Status][]Status{
	Available: {Building, Prepared, Active, Error, Removing},
	Building:  {Prepared, Error, Removing},
	Prepared:  {Active, Error, Removing},
	Active:    {Removing, Prepared},
	Removing:  {Available, Building, Prepared},
	Error:     {Prepared, Active, Removing},
}

// workSuccessors and exitSuccessors are the transitions listed at Work and Exit. One event can end a work and begin the
// next one, and can take a removal by two or three steps.
var (
	workSuccessors = map[Work][]Work{
		Resting:    {Opening, Loading},
		Opening:    {Resting, Loading},
		Loading:    {Resting, Cancelling},
		Cancelling: {Resting, Loading},
	}
	exitSuccessors = map[Exit][]Exit{
		Staying:   {Lingering, Closing, Waiting, Deleting},
		Lingering: {Staying, Closing},
		Closing:   {Waiting, Deleting, Staying},
		Waiting:   {Staying, Deleting},
		Deleting:  {Staying, Waiting},
	}
)

func (w *world) checkStates(before, after State, e Event) {
	w.t.Helper()
	for _, v := range after.Entries {
		old, found := before.Entry(v.Name)
		if e == (Deleted{v.Name, ""}) {
			continue // forgotten, and found in the source again
		}
		if found && old.Work != v.Work && !slices.Contains(workSuccessors[old.Work], v.Work) {
			w.fatalf("%s: work %d → %d is not a legal step", v.Name, old.Work, v.Work)
		}
		if found && old.Exit != v.Exit && !slices.Contains(exitSuccessors[old.Exit], v.Exit) {
			w.fatalf("%s: exit %d → %d is not a legal step", v.Name, old.Exit, v.Exit)
		}
		if found && old.Status != v.Status && !slices.Contains(successors[old.Status], v.Status) {
			w.fatalf("%s: %v → %v is not a legal step", v.Name, old.Status, v.Status)
		}
	}
	if before.Served != "" && after.Served == "" && after.Current == "" { // it was dropped
		lost, known := after.Entry(before.Served)
		readable := known && (lost.Readable || lost.Work != Resting)
		gone := after.Read && !slices.Contains(after.Listed, before.Served) // maybe as the pin does not allow it
		if !after.Gone && (readable || !gone && !lost.Faulty) {
			w.fatalf("%s was dropped without a reason", before.Served)
		}
	}
	if !after.Gone && after.Current < before.Current && after.Pin.Allows(before.Current) {
		w.fatalf("current went back from %q to %q", before.Current, after.Current)
	}
}

// check checks the invariants.
func (w *world) check() {
	w.t.Helper()
	active, loads := 0, 0
	for _, v := range w.state.Entries {
		if v.Status == Active {
			active++
			if v.Name != w.state.Current {
				w.fatalf("%s is active and not current", v.Name)
			}
		}
		if v.Status == Removing && v.Exit == Staying || v.Status != Removing && v.Exit != Staying {
			w.fatalf("%s: status %v and exit %v", v.Name, v.Status, v.Exit)
		}
		if v.Status == Error && v.Reason == "" {
			w.fatalf("%s: an error without a reason", v.Name)
		}
		if v.Live != w.live[v.Name] && len(w.queue) == 0 {
			w.fatalf("%s: live is %v, should be %v", v.Name, v.Live, w.live[v.Name])
		}
	}
	if want := min(1, len(w.state.Current)); active != want {
		w.fatalf("%d versions are active, current is %q", active, w.state.Current)
	}
	if w.state.Current != w.current && !w.state.Gone {
		w.fatalf("current is %q, the node serves %q", w.state.Current, w.current)
	}
	for v, cancelled := range w.loads {
		if e, _ := w.state.Entry(v); !cancelled && e.Reason == "" && !e.Held {
			loads++
		}
	}
	if loads > 4 { // one of the version that is served, one of that before a rollback, one that was not given up for a newer version
		w.fatalf("%d loads run that have not failed before", loads)
	}
}

// possible returns all events that could come next.
func (w *world) possible() []func() {
	var all []func()
	can := func(f func()) { all = append(all, f) }
	for _, v := range sorted(w.loads) {
		cancelled := w.loads[v]
		switch {
		case cancelled:
			can(func() { w.endLoad(v, "cancelled") })
		case !w.planned[v]:
			can(func() { w.feed(Postponed{v, w.rnd.IntN(2) == 0}) })
			can(func() { w.planned[v] = true; w.feed(Planned{v, w.rnd.IntN(5) == 0}) })
			can(func() { w.endLoad(v, "cannot plan") })
		case w.broken[v]:
			can(func() { w.endLoad(v, "broken") })
		default:
			can(func() { w.feed(w.seen(v)) })
			can(func() { w.held[v] = true; w.feed(w.seen(v)) })
			can(func() { w.endLoad(v, "") })
		}
	}
	for _, v := range sorted(w.live) {
		can(func() { w.feed(w.seen(v)) })
		if w.rnd.IntN(10) == 0 {
			can(func() { w.feed(Corrupted{v, w.rnd.IntN(3)}) })
		}
	}
	for _, v := range sorted(w.bad) {
		if w.bad[v] && w.rnd.IntN(10) == 0 {
			can(func() { // approved
				w.bad[v] = false
				w.pin.Approved = append(slices.Clone(w.pin.Approved), v)
				if w.live[v] {
					w.feed(w.seen(v))
				}
			})
		}
	}
	for _, v := range w.state.Entries {
		if v.Failed {
			can(func() { w.feed(Retry{v.Name}) })
		}
	}
	if w.rnd.IntN(10) == 0 {
		can(w.toggleFull)
	}
	for _, v := range sorted(w.lingers) {
		can(func() { delete(w.lingers, v); w.feed(Idle{v}) })
	}
	for _, v := range sorted(w.closing) {
		can(func() { w.closed(v) })
	}
	return all
}

func (w *world) closed(v string) {
	delete(w.closing, v)
	delete(w.live, v)
	w.feed(Closed{v})
}

func (w *world) endLoad(v, err string) {
	faulty := err == "broken"
	if err == "" {
		w.held[v] = true
		if w.live[v] {
			w.feed(w.seen(v))
		}
	}
	delete(w.loads, v)
	delete(w.planned, v)
	w.feed(LoadEnded{Version: v, Err: err, Faulty: faulty})
}
