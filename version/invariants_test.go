package version

import (
	"slices"

	"sequins/internal/content"
)

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
		old, found := before.Entry(v.Input)
		if e == (Deleted{v.Input, ""}) {
			continue // forgotten, and found in the source again
		}
		if found && old.Work != v.Work && !slices.Contains(workSuccessors[old.Work], v.Work) {
			w.fatalf("%v: work %d → %d is not a legal step", v.Input, old.Work, v.Work)
		}
		if found && old.Exit != v.Exit && !slices.Contains(exitSuccessors[old.Exit], v.Exit) {
			w.fatalf("%v: exit %d → %d is not a legal step", v.Input, old.Exit, v.Exit)
		}
		if found && old.Status != v.Status && !slices.Contains(successors[old.Status], v.Status) {
			w.fatalf("%v: %v → %v is not a legal step", v.Input, old.Status, v.Status)
		}
	}
	w.checkDropped(before, after)
	if after.Gone || before.Current == after.Current {
		return
	}
	if after.Current.Name < before.Current.Name && after.Pin.Allows(before.Current.Name) {
		w.fatalf("current went back from %v to %v", before.Current, after.Current)
	}
	served, _ := after.Entry(before.Served)
	dropped := served.Faulty || before.Likely // then it is not known which of the contents of the name was served
	for _, was := range []content.Input{before.Current, before.Served} {
		if after.Current.Name == was.Name && after.Current != was && !slices.Contains(after.Listed, after.Current) && !dropped {
			w.fatalf("%v was served and %v is, which the source does not list", was, after.Current)
		}
	}
}

// checkDropped checks that what was served before a restart is not dropped without a reason.
func (w *world) checkDropped(before, after State) {
	w.t.Helper()
	if before.Served.Name == "" || after.Served.Name != "" || after.Current.Name != "" || after.Gone {
		return
	}
	name := before.Served.Name
	lost, known := after.Entry(before.Served)
	readable := known && (lost.Readable || lost.Work != Resting)
	listed := slices.IndexFunc(after.Listed, func(in content.Input) bool { return in.Name == name })
	gone := after.Read && listed < 0 // maybe as the pin does not allow it
	faulty := lost.Faulty
	if listed >= 0 && !faulty {
		source, _ := after.Entry(after.Listed[listed])
		faulty = source.Failed && source.Faulty
	}
	if (readable || !gone && !faulty) && !(before.Likely && lost.Held) {
		w.fatalf("%v was dropped without a reason", before.Served)
	}
}

// check checks the invariants.
func (w *world) check() {
	w.t.Helper()
	active, loads := 0, 0
	for _, v := range w.state.Entries {
		if v.Status == Active {
			active++
			if v.Input != w.state.Current {
				w.fatalf("%v is active and not current", v.Input)
			}
		}
		if v.Status == Removing && v.Exit == Staying || v.Status != Removing && v.Exit != Staying {
			w.fatalf("%v: status %v and exit %v", v.Input, v.Status, v.Exit)
		}
		if v.Status == Error && v.Reason == "" {
			w.fatalf("%v: an error without a reason", v.Input)
		}
		if v.Live != w.live[v.Input] && len(w.queue) == 0 {
			w.fatalf("%v: live is %v, should be %v", v.Input, v.Live, w.live[v.Input])
		}
	}
	if want := min(1, len(w.state.Current.Name)); active != want {
		w.fatalf("%d versions are active, current is %v", active, w.state.Current)
	}
	if w.state.Current != w.current && !w.state.Gone {
		w.fatalf("current is %v, the node serves %v", w.state.Current, w.current)
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
	lost := want == w.state.Served && !w.readable(want) && (w.broken[want] || !slices.Contains(w.source, want)) // and nothing else is there
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
		if v.Status == Prepared && v.Held {
			held++
		} else if v.Status == Prepared {
			kept++
		} else if v.Status != Active && v.Status != Error && v.Input != w.state.Served {
			w.fatalf("%v ended as %v", v.Input, v.Status)
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
