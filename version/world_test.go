package version

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sequins/internal/content"
	"sequins/version/pin"
)

// flags is a set of inputs.
type flags map[content.Input]bool

// sorted returns the inputs that are in the map, whatever their values.
func (f flags) sorted() []content.Input {
	return slices.SortedFunc(maps.Keys(f), func(a, b content.Input) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Hash, b.Hash))
	})
}

// world simulates a node and its source: it carries out actions, fails on invalid
// ones, and generates the possible next events.
type world struct {
	t     *testing.T
	rnd   *rand.Rand
	solo  bool
	calm  bool // nothing happens by chance
	state state
	trace []transition

	source   []content.Input // ascending, one of each name
	broken   flags           // inputs whose loads fail
	bad      flags           // inputs that a gate holds once they are complete, until somebody approves them
	disk     flags
	loads    flags // running; true if cancelled
	planned  flags // running loads that have planned
	live     flags
	held     flags // all partitions are on this node
	remote   flags // other nodes have a part of it; true if they have all
	refused  flags // inputs of which a load has failed or a block was damaged, or that the gate has held
	lingers  flags
	closing  flags
	current  content.Input
	answered []content.Input // every version that was ever activated
	queue    []event         // answers, delivered before other events
	gone     bool
	full     bool          // the disk: no other version can be recorded than that which is
	recorded content.Input // version that a restart would serve
	former   flags         // inputs that were recorded before it, which no gate holds
	pin      pin.File
	pinned   bool // pin has changed
	keep     int
	gated    bool               // some versions are bad
	served   content.Input      // version that was active before the restart at the start of the walk
	steps    map[[2]Status]bool // that versions have taken
	likely   bool               // it is not known whether it was
	taken    content.Input      // what other nodes served then

	kill func() // is called after each action
}

// transition is a step of a walk, to be printed when it fails.
type transition struct {
	event   event
	actions []Action
	after   state
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), broken: flags{}, bad: flags{}, disk: flags{}, loads: flags{}, planned: flags{},
		live: flags{}, held: flags{}, remote: flags{}, refused: flags{}, lingers: flags{}, closing: flags{}, former: flags{}, kill: func() {}, steps: map[[2]Status]bool{}}
	w.solo = w.rnd.IntN(2) == 0
	w.keep = w.rnd.IntN(4)
	w.gated = seed%3 == 0
	return w
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	for _, step := range w.trace[max(0, len(w.trace)-40):] {
		w.t.Logf("%T%v → %s | %v", step.event, step.event, describe(step.actions), step.after)
	}
	w.t.Fatalf(format, args...)
}

// chance reports true once in n times, and never while the world is calm.
func (w *world) chance(n int) bool { return !w.calm && w.rnd.IntN(n) == 0 }

func (w *world) seen(v content.Input) Seen {
	passed := v == w.current || v == w.recorded || w.former[v]
	judged := w.bad[v] && w.held[v] && !passed
	if judged {
		w.refused[v] = true
	}
	unjudged := !judged && !passed && w.chance(10)
	enough := w.held[v] && w.solo || !w.solo && w.chance(4) || w.calm && w.remote[v]
	replicated := enough && !unjudged && (judged || passed || !w.bad[v])
	readable := replicated || w.held[v] || w.calm && w.readable(v) || w.chance(2)
	if readable && !w.held[v] {
		w.remote[v] = w.remote[v] || replicated
	}
	return Seen{v, w.held[v], replicated, readable, replicated || w.held[v] && (w.calm || w.chance(2)), judged, unjudged}
}

// readable reports whether a version can be read after a restart, here or from other nodes.
func (w *world) readable(v content.Input) bool {
	_, remote := w.remote[v]
	return w.held[v] && w.disk[v] || remote
}

// feed passes an event to the machine and carries out the actions, with all
// immediate answers.
func (w *world) feed(e event) {
	w.queue = append(w.queue, e)
	for len(w.queue) > 0 {
		e := w.queue[0]
		w.queue = w.queue[1:]
		before := w.state
		next, actions := Next(w.state, e)
		if v := activated(actions); v.Name != "" && w.full && v != w.recorded {
			w.state.Unrecorded = true
			next, actions = Next(w.state, e)
		}
		w.state = next
		w.trace = append(w.trace, transition{e, actions, next})
		w.checkStates(before, next, e)
		for _, a := range actions {
			w.carryOut(a)
			w.kill()
		}
		w.check()
	}
}

// toggleFull fills or frees the disk, and tries again to record a version.
func (w *world) toggleFull() {
	w.full, w.state.Unrecorded = !w.full, false
	for _, v := range w.live.sorted() {
		w.feed(w.seen(v))
	}
}

func activated(actions []Action) content.Input {
	for _, a := range actions {
		if a.Op == Activate {
			return a.Input
		}
	}
	return content.Input{}
}

func (w *world) answer(e event) { w.queue = append(w.queue, e) }

func (w *world) carryOut(a Action) {
	v := a.Input
	if _, known := w.state.Entry(v); !known {
		w.fatalf("%v: of a version that is forgotten", a)
	}
	switch a.Op {
	case open:
		w.must(a, !w.live[v])
		if w.held[v] && w.disk[v] || w.calm && w.readable(v) || !w.solo && w.chance(3) {
			w.live[v] = true
			w.answer(w.seen(v))
		} else {
			w.answer(NotFound{v})
		}
	case Load:
		_, running := w.loads[v]
		w.must(a, w.state.Source != Unasked && !running && !w.closing[v] && !w.lingers[v])
		w.loads[v], w.disk[v] = false, true
	case Activate:
		w.mustActivate(a)
		w.current = v
		if !w.full {
			if old := w.recorded; old != v && old.Name != "" {
				w.former[old] = true
			}
			w.recorded = v
			delete(w.former, v)
		}
		w.answered = append(w.answered, v)
	case Cancel:
		cancelled, running := w.loads[v]
		w.must(a, running && !cancelled)
		w.loads[v] = true
	case Retire:
		w.must(a, w.live[v] && !w.lingers[v] && !w.closing[v] && v != w.current)
		w.lingers[v] = true
	case Revive:
		w.must(a, w.lingers[v] && (v.Name >= w.current.Name || !w.pin.Allows(w.current.Name)))
		w.must(a, slices.Contains(w.state.Listed, v) || v == w.taken)
		delete(w.lingers, v)
	case Close:
		w.must(a, w.live[v] && !w.closing[v] && (v != w.current || w.state.Source == Gone))
		delete(w.lingers, v)
		w.closing[v] = true
	case Delete:
		_, running := w.loads[v]
		w.must(a, !running && !w.live[v])
		if w.chance(10) {
			w.answer(Deleted{v, "busy"})
			return
		}
		delete(w.disk, v)
		delete(w.held, v)
		w.answer(Deleted{v, ""})
	}
}

// mustActivate fails if a version must not become the current one.
func (w *world) mustActivate(a Action) {
	w.t.Helper()
	v, first := a.Input, len(w.answered) == 0
	sameName := v.Name == w.current.Name && v != w.current && slices.Contains(w.state.Listed, v)
	for _, condition := range []struct {
		what string
		ok   bool
	}{
		{"forward", v.Name > w.current.Name || sameName || a.Back && !w.pin.Allows(w.current.Name)},
		{"readable", w.live[v] && (!w.solo || w.held[v] || w.calm && w.remote[v] || first && v == w.served)},
		{"known to be wanted", w.state.Source != Unasked || v == w.served || v == w.taken || !w.pin.Allows(w.served.Name) || w.likely && v.Name == w.served.Name},
		{"recorded", !w.full || first || v == w.recorded || w.likely && v == w.served || !w.pin.Allows(w.current.Name)},
		{"passed by the gate", !w.bad[v] || v == w.served || v == w.recorded || w.former[v]},
	} {
		if !condition.ok {
			w.fatalf("%v (%v) becomes active and is not %s", a, v, condition.what)
		}
	}
}

func (w *world) must(a Action, ok bool) {
	w.t.Helper()
	if !ok {
		w.fatalf("%v (%v) is invalid in this state", a, a.Input)
	}
}

// possible returns all events that could come next.
func (w *world) possible() []func() {
	var all []func()
	can := func(f func()) { all = append(all, f) }
	for _, v := range w.loads.sorted() {
		cancelled := w.loads[v]
		switch {
		case cancelled:
			can(func() { w.endLoad(v, "cancelled") })
		case !w.planned[v]:
			if w.canBegin() {
				can(func() { w.feed(Begun{v, true}) })
				can(func() { w.plan(v, w.rnd.IntN(5) == 0) })
			}
			can(func() { w.endLoad(v, "cannot plan") })
		case w.broken[v]:
			can(func() { w.endLoad(v, "broken") })
		default:
			can(func() { w.feed(w.seen(v)) })
			can(func() { w.held[v] = true; w.feed(w.seen(v)) })
			can(func() { w.endLoad(v, "") })
		}
	}
	for _, v := range w.live.sorted() {
		can(func() { w.feed(w.seen(v)) })
		if w.rnd.IntN(10) == 0 {
			can(func() { w.damage(v) })
		}
	}
	for _, v := range w.bad.sorted() {
		if w.bad[v] && w.rnd.IntN(10) == 0 {
			can(func() { w.approve(v.Name) })
		}
		if w.bad[v] && !w.solo && w.rnd.IntN(10) == 0 {
			can(func() { w.feed(Rejected{append(slices.Clone(w.state.elsewhere), v)}) })
		}
	}
	for _, v := range w.state.Entries {
		if v.Failure.Waits {
			can(func() { w.feed(Retry{v.Input}) })
		}
	}
	if w.rnd.IntN(10) == 0 {
		can(w.toggleFull)
	}
	for _, v := range w.lingers.sorted() {
		can(func() { delete(w.lingers, v); w.feed(IsIdle{v}) })
	}
	for _, v := range w.closing.sorted() {
		can(func() { w.closed(v) })
	}
	return all
}

// maxBegun is how many loads may run at a time: of the others, each waits for its turn.
const maxBegun = 2

// canBegin reports whether a load that waits may have its turn.
func (w *world) canBegin() bool {
	begun := 0
	for _, v := range w.state.Entries {
		if v.Begun {
			begun++
		}
	}
	return begun < maxBegun
}

// plan plans a load that runs, after which the version may be in the set.
func (w *world) plan(v content.Input, changed bool) {
	w.planned[v] = true
	f := w.state.Clone()
	if f.Planned(v, changed) {
		w.held[v] = w.held[v] && !w.live[v] // blocks of another division are of no use
		w.live[v] = true
		w.answer(Planned{v, changed})
		w.feed(w.seen(v))
		return
	}
	w.feed(Planned{v, changed})
}

// damage makes a block of a version damaged. It is set aside.
func (w *world) damage(v content.Input) {
	w.refused[v] = true
	if e, _ := w.state.Entry(v); e.Removal > Lingering {
		return
	}
	w.held[v] = false
	w.answer(Corrupted{v, w.rnd.IntN(3)})
	w.feed(w.seen(v))
}

// approve makes all inputs of a version good.
func (w *world) approve(name string) {
	w.pin.Approve = append(slices.Clone(w.pin.Approve), name)
	for _, v := range w.bad.sorted() {
		if v.Name == name {
			w.bad[v] = false
		}
	}
	for _, v := range w.live.sorted() {
		if v.Name == name {
			w.feed(w.seen(v))
		}
	}
}

func (w *world) closed(v content.Input) {
	delete(w.closing, v)
	delete(w.live, v)
	w.feed(IsClosed{v})
}

func (w *world) endLoad(v content.Input, err string) {
	faulty := err == "broken"
	if err == "" {
		w.held[v] = true
		if w.live[v] {
			w.feed(w.seen(v))
		}
	} else {
		w.refused[v] = true
	}
	delete(w.loads, v)
	delete(w.planned, v)
	w.feed(LoadEnded{Input: v, Err: err, Faulty: faulty})
}

// sourceChanges adds, removes, replaces, breaks or repairs versions in the source.
func (w *world) sourceChanges() {
	v := w.anyInput()
	switch w.rnd.IntN(7) {
	case 0, 1, 2:
		if !slices.ContainsFunc(w.source, func(in content.Input) bool { return in.Name == v.Name }) {
			w.source = ascending(append(slices.Clone(w.source), v))
			w.newInput(v)
		}
	case 3:
		if len(w.source) > 0 {
			i := w.rnd.IntN(len(w.source))
			w.source = slices.Delete(slices.Clone(w.source), i, i+1)
		}
	case 4:
		if len(w.source) > 0 {
			v = w.source[w.rnd.IntN(len(w.source))]
			w.broken[v] = !w.broken[v]
		}
	case 5: // another input of a version: maybe one that was there before
		w.replaceInput()
	}
}

func (w *world) anyInput() content.Input {
	return in(fmt.Sprintf("%03d", 1+w.rnd.IntN(60)) + []string{"", "~0", "~f"}[w.rnd.IntN(3)])
}

// newInput decides whether an input that the source has now can be loaded and passes the gate.
func (w *world) newInput(v content.Input) {
	w.broken[v] = w.rnd.IntN(3) == 0
	if _, known := w.bad[v]; known { // the same input has the same contents
		return
	}
	if !w.disk[v] && v != w.current && v != w.served && !slices.Contains(w.pin.Approve, v.Name) {
		w.bad[v] = w.gated && w.rnd.IntN(3) == 0
	}
}

// replaceInput changes the files of a version, of the current one more often than of others.
func (w *world) replaceInput() {
	if len(w.source) == 0 {
		return
	}
	i := slices.IndexFunc(w.source, func(in content.Input) bool { return in.Name == w.current.Name })
	if i < 0 || w.rnd.IntN(2) == 0 {
		i = w.rnd.IntN(len(w.source))
	}
	w.source = slices.Clone(w.source)
	w.source[i] = in(w.source[i].Name + []string{"", "~0", "~f"}[w.rnd.IntN(3)])
	w.newInput(w.source[i])
}

// pinChanges pins or excludes versions, or takes that back.
func (w *world) pinChanges() {
	w.pinned = true
	name := w.anyInput().Name
	if len(w.source) > 0 {
		name = w.source[w.rnd.IntN(len(w.source))].Name
	}
	switch w.rnd.IntN(5) {
	case 0:
		w.pin.Version = name
	case 1:
		w.pin.Exclude = append(slices.Clone(w.pin.Exclude), name)
	case 2:
		if w.current.Name != "" {
			w.pin.Exclude = append(slices.Clone(w.pin.Exclude), w.current.Name)
		}
	default:
		w.pin = pin.File{Approve: w.pin.Approve}
	}
}

// ascending returns inputs in the order of their names, one of each.
func ascending(inputs []content.Input) []content.Input {
	sorted := slices.SortedStableFunc(slices.Values(inputs), func(a, b content.Input) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(sorted, func(a, b content.Input) bool { return a.Name == b.Name })
}

// listed is the event of a listing of the source.
func (w *world) listed() Listed {
	allowed := slices.DeleteFunc(slices.Clone(w.source), func(v content.Input) bool { return !w.pin.Allows(v.Name) })
	return Listed{Inputs: allowed, Pin: w.pin, Keep: w.keep}
}
