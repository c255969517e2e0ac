package version

import (
	"os"
	"regexp"
	"slices"

	"sequins/internal/content"
)

// successors are the transitions that the package comment lists.
var successors = func() map[Status][]Status {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		panic(err)
	}
	all := map[Status][]Status{}
	for _, m := range regexp.MustCompile(`(?m)^//\t([A-Z]+) → ([A-Z]+) `).FindAllSubmatch(doc, -1) {
		from, to := Status(m[1]), Status(m[2])
		all[from] = append(all[from], to)
	}
	return all
}()

// workSuccessors and removalSuccessors are the transitions listed at Work and Removal. One event can end a work and begin the
// next one, and can take a removal by two or three steps.
var (
	workSuccessors = map[Work][]Work{
		Resting:    {Unopened, Loading},
		Unopened:   {Resting, Loading},
		Loading:    {Resting, Cancelling},
		Cancelling: {Resting, Loading},
	}
	removalSuccessors = map[Removal][]Removal{
		Staying:   {Lingering, Closing, Closed, Deleting},
		Lingering: {Staying, Closing},
		Closing:   {Closed, Deleting, Staying},
		Closed:    {Staying, Deleting},
		Deleting:  {Staying, Undeleted},
		Undeleted: {Staying, Deleting},
	}
)

func (w *world) checkStates(before, after state, e event) {
	w.t.Helper()
	for _, v := range before.Entries {
		if _, found := after.Entry(v.Input); !found && e != (Deleted{v.Input, ""}) && (w.live[v.Input] || w.disk[v.Input]) {
			w.fatalf("%v: forgotten, and something of it is here", v.Input)
		}
	}
	for _, v := range after.Entries {
		old, found := before.Entry(v.Input)
		if e == (Deleted{v.Input, ""}) {
			continue // forgotten, and found in the source again
		}
		if found && old.Work != v.Work && !slices.Contains(workSuccessors[old.Work], v.Work) {
			w.fatalf("%v: work %d → %d is not a legal step", v.Input, old.Work, v.Work)
		}
		if found && old.Removal != v.Removal && !slices.Contains(removalSuccessors[old.Removal], v.Removal) {
			w.fatalf("%v: removal %d → %d is not a legal step", v.Input, old.Removal, v.Removal)
		}
		was, is := before.Status(old), after.Status(v)
		if found && was != is && !slices.Contains(successors[was], is) {
			w.fatalf("%v: %v → %v is not a legal step", v.Input, was, is)
		}
		w.steps[[2]Status{was, is}] = true
	}
	w.checkDropped(before, after)
	if after.Source == Gone || before.Current == after.Current {
		return
	}
	if after.Current.Name < before.Current.Name && after.Pin.Allows(before.Current.Name) {
		w.fatalf("current went back from %v to %v", before.Current, after.Current)
	}
	served, _ := after.Entry(before.Before())
	dropped := served.Failure.Kind == Faulty || before.Likely // then it is not known which of the contents of the name was served
	for _, was := range []content.Input{before.Current, before.Before()} {
		if after.Current.Name == was.Name && after.Current != was && !slices.Contains(after.Listed, after.Current) && !dropped {
			w.fatalf("%v was served and %v is, which the source does not list", was, after.Current)
		}
	}
}

// checkDropped checks that what was served before a restart is not dropped without a reason.
func (w *world) checkDropped(before, after state) {
	w.t.Helper()
	if before.Before().Name == "" || after.Before().Name != "" || after.Current.Name != "" || after.Source == Gone {
		return
	}
	name := before.Served.Name
	lost, known := after.Entry(before.Served)
	readable := known && lost.Removal == Staying && (lost.Coverage >= Partial || lost.Work != Resting && lost.Failure.Kind != Faulty)
	listed := slices.IndexFunc(after.Listed, func(in content.Input) bool { return in.Name == name })
	gone := after.Source == Known && listed < 0 // maybe as the pin does not allow it
	faulty := lost.Failure.Kind == Faulty
	if listed >= 0 && !faulty {
		source, _ := after.Entry(after.Listed[listed])
		faulty = source.Failure.Kind == Faulty
	}
	if (readable || !gone && !faulty) && !(before.Likely && lost.Verdict == Held) {
		w.fatalf("%v was dropped without a reason", before.Served)
	}
}

// check checks the invariants.
func (w *world) check() {
	w.t.Helper()
	active, loads := 0, 0
	for _, v := range w.state.Entries {
		if w.state.Status(v) == Active {
			active++
		}
		if (v.Coverage > Absent) != w.live[v.Input] && len(w.queue) == 0 {
			w.fatalf("%v: coverage is %v, and in the set is %v", v.Input, v.Coverage, w.live[v.Input])
		}
	}
	if want := min(1, len(w.state.Current.Name)); active != want {
		w.fatalf("%d versions are active, current is %v", active, w.state.Current)
	}
	if w.state.Current != w.current && w.state.Source != Gone {
		w.fatalf("current is %v, the node serves %v", w.state.Current, w.current)
	}
	for v, cancelled := range w.loads {
		if e, _ := w.state.Entry(v); !cancelled && e.Failure.Reason == "" && e.Verdict != Held {
			loads++
		}
	}
	// Until a version is active after a restart of which it is not known what was served, nothing is superfluous. From then on, one load is
	// of the version that is served, one of that before a rollback, and one waits for its turn.
	unknown := w.state.Likely && w.state.Current.Name == ""
	if loads > 3+maxBegun && !unknown {
		w.fatalf("%d loads run that have not failed before", loads)
	}
}

// checkSettled checks the final state.
func (w *world) checkSettled() {
	w.t.Helper()
	if w.gone {
		if !w.state.Finished() || len(w.live)+len(w.disk)+len(w.loads) > 0 {
			w.fatalf("gone, but left are %v, live %v, on disk %v, loading %v", w.state, w.live, w.disk, w.loads)
		}
		return
	}
	current := w.state.Current
	want := w.state.Floor()
	for _, v := range w.listed().Inputs {
		if v.Name >= want.Name && !w.broken[v] && !w.bad[v] {
			want = v
		}
	}
	lost := want == w.served && !w.readable(want) && (w.broken[want] || !slices.Contains(w.source, want)) // and nothing else is there
	if current != want && want.Name != "" && !lost {
		w.fatalf("current is %v, want %v; in the source %v, broken %v, pin %v", current, want, w.source, w.broken, w.pin)
	}
	if current.Name < w.taken.Name && !w.pinned && !w.refused[w.taken] {
		w.fatalf("current is %v, and other nodes served %v", current, w.taken)
	}
	w.checkKept()
	if !slices.IsSortedFunc(w.answered, compareNames) && !w.pinned {
		w.fatalf("answered from %v", w.answered)
	}
}

// checkKept checks that nothing is left that is not needed.
func (w *world) checkKept() {
	w.t.Helper()
	if w.state.Likely && w.state.Current.Name == "" {
		return // nothing is deleted before something is served
	}
	kept, held := 0, 0
	for _, v := range w.state.Entries {
		switch status := w.state.Status(v); {
		case status == Prepared && v.Input == w.state.Taken && w.state.isAhead(): // other nodes served it
		case status == Prepared && v.Verdict == Held:
			held++
		case status == Prepared:
			kept++
		case status != Active && status != Error && v.Input != w.state.Before():
			w.fatalf("%v ended as %v", v.Input, status)
		}
	}
	if kept > max(0, w.keep-1) || held > 1 {
		w.fatalf("%d versions are kept and %d held: %v", kept, held, w.state)
	}
	for v := range w.disk {
		if _, known := w.state.Entry(v); !known {
			w.fatalf("%v was left on the disk", v)
		}
	}
}
