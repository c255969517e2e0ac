package version

import (
	"fmt"
	"maps"
	"slices"

	"sequins/internal/content"
	"sequins/version/pin"
)

// An event is something that happens to a node. tell records it as package node does.
type event interface{ tell(s *state) }

// state is what a node of the tests knows: the facts, and what package node adds to them.
type state struct {
	Facts
	failures []failed                // from before the restart
	reloaded map[content.Input][]int // partitions set aside since the last retry
	outdated map[content.Input]bool  // running loads during which a block was set aside
	held     map[content.Input]bool  // inputs that were held when they were judged last
	// elsewhere are inputs that another node has held.
	elsewhere []content.Input
}

func (s state) clone() state {
	s.Facts = s.Clone()
	s.reloaded, s.outdated, s.held = maps.Clone(s.reloaded), maps.Clone(s.outdated), maps.Clone(s.held)
	for _, m := range []*map[content.Input]bool{&s.outdated, &s.held} {
		if *m == nil {
			*m = map[content.Input]bool{}
		}
	}
	if s.reloaded == nil {
		s.reloaded = map[content.Input][]int{}
	}
	return s
}

// A failed input failed before a restart.
type failed struct {
	in     content.Input
	reason string
	faulty bool
}

type (
	// Start is the first event.
	Start struct {
		Local         []content.Input
		Served, Taken content.Input
		Likely        bool
		Waiting       bool
		Pin           pin.File
		Keep          int
		Held, Former  []content.Input
		Failures      []failed
	}
	Waited   struct{}
	Surveyed struct{}
	// Listed is the end of a look at the source; Unlisted is that of one that has failed.
	Listed struct {
		Inputs  []content.Input
		Unknown []string
		Relook  bool // not a refresh
		Pin     pin.File
		Keep    int
	}
	Unlisted struct{}
	Left     struct{} // the database is not in the source any more
	Pinned   struct{ Pin pin.File }
	NotFound struct{ Input content.Input } // answers open
	Planned  struct {
		Input   content.Input
		Changed bool
	}
	Begun struct { // or not any more
		Input content.Input
		Begun bool
	}
	Seen struct {
		Input                                                 content.Input
		Complete, Replicated, Readable, Whole, Held, Unjudged bool
	}
	LoadEnded struct {
		Input                             content.Input
		Err                               string
		Faulty, Passing, NoRoom, Outdated bool
	}
	Corrupted struct {
		Input     content.Input
		Partition int
	}
	Rejected struct{ Inputs []content.Input } // by another node
	Retry    struct{ Input content.Input }
	Waits    struct{ Input content.Input } // it has waited for other nodes for long
	IsIdle   struct{ Input content.Input }
	IsClosed struct{ Input content.Input }
	Deleted  struct {
		Input content.Input
		Err   string
	}
)

func (e Start) tell(s *state) {
	s.Served, s.Likely, s.Taken, s.Waiting, s.Pin, s.Keep = e.Served, e.Likely, e.Taken, e.Waiting, e.Pin, e.Keep
	s.Facts.Start(e.Local, e.Former)
	for _, in := range e.Held {
		s.held[in] = true
	}
	s.failures = e.Failures
	s.failAgain()
}

// failAgain makes versions fail as they did before the restart.
func (s *state) failAgain() {
	for _, f := range s.failures {
		if v, here := s.Entry(f.in); slices.Contains(s.Listed, f.in) && !here || here && v.Failure.Reason == "" && f.in != s.Served && f.in != s.Taken {
			kind := Internal
			if f.faulty {
				kind = Faulty
			}
			s.Add(f.in)
			s.Fail(f.in, Failure{Reason: f.reason, Kind: kind})
		}
	}
}

func (Waited) tell(s *state) { s.Waiting = false }

func (Surveyed) tell(s *state) { s.OpenAgain(s.Before()) }

func (e Listed) tell(s *state) {
	s.Pin, s.Keep = e.Pin, e.Keep
	if !e.Relook {
		Surveyed{}.tell(s)
		s.DeleteAgain()
	}
	s.List(e.Inputs, e.Unknown)
	maps.DeleteFunc(s.held, func(in content.Input, _ bool) bool { // its files may be back with other ones
		_, here := s.Entry(in)
		return !here && !slices.Contains(s.Listed, in)
	})
	s.failAgain()
	s.failures = nil
}

func (e Waits) tell(s *state) { s.Stall(e.Input) }

func (e Rejected) tell(s *state) { s.elsewhere = e.Inputs }

func (Unlisted) tell(s *state) {
	if s.Source == Unasked {
		s.Source = Away
	}
}

func (Left) tell(s *state) {
	s.Source, s.Current = Gone, content.Input{}
	s.DeleteAgain()
}

func (e Pinned) tell(s *state)   { s.Pin = e.Pin }
func (e NotFound) tell(s *state) { s.Opened(e.Input, false) }

func (e Planned) tell(s *state) {
	s.Facts.Planned(e.Input, e.Changed)
	Begun{e.Input, true}.tell(s)
}

func (e Begun) tell(s *state) {
	if v := s.entry(e.Input); v != nil && v.Work == Loading {
		v.Begun = e.Begun
	}
}

func (e Seen) tell(s *state) {
	s.Opened(e.Input, true)
	if v := s.entry(e.Input); v == nil || v.Coverage == Absent {
		return
	}
	coverage := Empty
	switch {
	case e.Replicated:
		coverage = Replicated
	case e.Whole:
		coverage = Whole
	case e.Readable:
		coverage = Partial
	}
	verdict := Passed
	switch {
	case e.Held:
		verdict = Held
	case e.Unjudged:
		verdict = Unjudged
	}
	if verdict != Unjudged {
		s.held[e.Input] = verdict == Held
	}
	s.See(e.Input, coverage, e.Complete, verdict)
}

func (e LoadEnded) tell(s *state) {
	f := Failure{Reason: e.Err}
	switch {
	case e.Faulty:
		f.Kind = Faulty
	case e.NoRoom:
		f.Kind = NoRoom
	case e.Passing:
		f.Kind = Passing
	}
	s.Loaded(e.Input, f, e.Outdated || s.outdated[e.Input])
	delete(s.outdated, e.Input)
}

func (e Corrupted) tell(s *state) {
	v := s.entry(e.Input)
	if v == nil || v.Coverage == Absent || v.Removal != Staying {
		return
	}
	s.outdated[e.Input] = v.Work == Loading
	if slices.Contains(s.reloaded[e.Input], e.Partition) {
		s.Fail(e.Input, Failure{Reason: "damaged again"})
		return
	}
	s.reloaded[e.Input] = append(slices.Clone(s.reloaded[e.Input]), e.Partition)
}

func (e Retry) tell(s *state) {
	s.Facts.Retry(e.Input)
	delete(s.reloaded, e.Input)
}

func (e IsIdle) tell(s *state) {
	if v := s.entry(e.Input); v != nil && v.Removal == Lingering {
		v.Removal = Idle
	}
}

func (e IsClosed) tell(s *state) { s.HasClosed(e.Input) }
func (e Deleted) tell(s *state)  { s.Facts.Deleted(e.Input, e.Err) }

// Next returns the facts after an event, and what is decided then.
func Next(before state, e event) (state, []Action) {
	s := before.clone()
	e.tell(&s)
	s.Rejected = nil
	for _, in := range s.Listed {
		if (s.held[in] || slices.Contains(s.elsewhere, in)) && !s.Pin.Excuses(in.Name) {
			s.Rejected = append(s.Rejected, in)
		}
	}
	var opens, actions []Action
	for _, in := range s.Unopened() {
		if v, _ := before.Entry(in); v.Work != Unopened {
			opens = append(opens, Action{Op: open, Input: in})
		}
	}
	s.Facts, actions = Decide(s.Facts)
	if _, more := Decide(s.Facts); len(more) > 0 {
		panic(fmt.Sprintf("a decision that has been carried out leads to another one: %s; %s\nbefore %+v\nafter %+v", describe(actions), describe(more), before.Facts, s.Facts))
	}
	return s, append(opens, actions...)
}
