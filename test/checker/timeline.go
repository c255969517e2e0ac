package checker

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// timeline is the events of a history, indexed for queries about a read.
type timeline struct {
	published     map[string]time.Duration
	calm          []Event
	downs, pauses map[string][]span // by node
	unsafes       map[string][]span // by node; "" for all nodes
	backs         map[string][]span // by node; "" for all nodes
	stalls        []span
	starts        map[string][]time.Duration
	firsts        map[string][]time.Duration // by node: the times of the first answers after starts
}

// span is a time interval, including both ends.
type span struct{ from, to time.Duration }

const forever = time.Duration(math.MaxInt64)

func newTimeline(h *History) timeline {
	t := timeline{
		published: map[string]time.Duration{}, starts: map[string][]time.Duration{}, firsts: map[string][]time.Duration{},
		downs: map[string][]span{}, pauses: map[string][]span{}, unsafes: map[string][]span{},
		backs: map[string][]span{},
	}
	events := slices.Clone(h.Events)
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	for _, e := range events {
		t.note(e)
	}
	t.noteFirsts(h.Reads)
	return t
}

func (t *timeline) note(e Event) {
	switch e.Kind {
	case Publish:
		if _, twice := t.published[e.Version]; !twice {
			t.published[e.Version] = e.At
		}
	case Calm:
		t.calm = append(t.calm, e)
	case Start:
		t.starts[e.Node] = append(t.starts[e.Node], e.At)
		open(t.downs, e) // until it is up
	case Down:
		open(t.downs, e)
	case Up:
		shut(t.downs, e)
	case Pause:
		open(t.pauses, e)
	case Resume:
		shut(t.pauses, e)
	case Stall:
		t.stalls = append(t.stalls, span{e.At - e.For, e.At})
	case Back:
		open(t.backs, e)
	case Ahead:
		for node := range t.backs {
			shut(t.backs, Event{Node: node, At: e.At})
		}
	case Unsafe:
		open(t.unsafes, e)
	case Safe:
		shut(t.unsafes, e)
	}
}

// open begins a span of a node, unless one is open.
func open(spans map[string][]span, e Event) {
	all := spans[e.Node]
	if len(all) == 0 || all[len(all)-1].to != forever {
		spans[e.Node] = append(all, span{e.At, forever})
	}
}

// shut ends the open span.
func shut(spans map[string][]span, e Event) {
	if all := spans[e.Node]; len(all) > 0 && all[len(all)-1].to == forever {
		all[len(all)-1].to = e.At
	}
}

// noteFirsts finds the time of the first answer about a key after each start of a
// node.
func (t *timeline) noteFirsts(reads []Read) {
	for node, starts := range t.starts {
		t.firsts[node] = slices.Repeat([]time.Duration{forever}, len(starts))
	}
	for _, r := range reads {
		starts := t.starts[r.Node]
		i, _ := slices.BinarySearch(starts, r.End+1) // the first one after the last that was before
		if i > 0 && answered(r) && r.Start >= starts[i-1] {
			t.firsts[r.Node][i-1] = min(t.firsts[r.Node][i-1], r.End)
		}
	}
}

// starting reports whether the node had not answered any read between its last
// start and the start of r.
func (t *timeline) starting(r Read) bool {
	i, _ := slices.BinarySearch(t.starts[r.Node], r.End+1)
	return i > 0 && r.Start <= t.firsts[r.Node][i-1]
}

func (t *timeline) down(r Read) bool   { return overlaps(t.downs[r.Node], r) }
func (t *timeline) paused(r Read) bool { return overlaps(t.pauses[r.Node], r) }

// stalled returns for how long the machine stood still during a read.
func (t *timeline) stalled(r Read) (all time.Duration) {
	for _, s := range t.stalls {
		all += max(0, min(s.to, r.End)-max(s.from, r.Start))
	}
	return all
}

func (t *timeline) unsafe(r Read) bool {
	return overlaps(t.unsafes[""], r) || overlaps(t.unsafes[r.Node], r)
}

// mayGoBack reports whether nodes could go back between two reads.
func (t *timeline) mayGoBack(earlier, later Read) bool {
	between := func(s span) bool { return s.from <= later.End && earlier.End <= s.to }
	return slices.ContainsFunc(t.backs[""], between) || slices.ContainsFunc(t.backs[later.Node], between)
}

func (t *timeline) downAt(node string, at time.Duration) bool {
	r := Read{Node: node, Start: at, End: at}
	return t.down(r) || t.paused(r)
}

func overlaps(spans []span, r Read) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.from <= r.End && r.Start <= s.to })
}
