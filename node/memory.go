package node

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/store"
	"sequins/version"
	"sequins/version/gate"
	"sequins/version/pin"
)

// What a database has to remember over restarts is in its memory (store.State). It is written before a switch, so that a restart does not go back. If
// that fails, for example on a full disk, the node continues to serve the previous version and retries the switch with growing pauses. Without a
// previous version, if parts of it can no longer be read, or if the pin does not allow it, the node switches, and retries only the writing.

// stateAttempts is how often a state is read again that the disk does not give. Then it is as one that is damaged.
const stateAttempts = 3

// A memory is what a database has to remember.
type memory struct {
	db      *common
	state   store.State
	pin     pin.File  // as last read
	unread  bool      // the disk has not given the state
	unsaved int       // number of consecutive failed attempts to write it
	again   time.Time // of another attempt; zero: there is none
}

// remember reads the memory, and takes it into the facts. It returns the inputs that were active before the one that was served. local are those on
// the disk.
func (mem *memory) remember(local []content.Input) (former []content.Input) {
	var err error
	for attempt := 1; ; attempt++ {
		mem.state, err = mem.db.node.o.Store.State(mem.db.name)
		if err == nil || errors.Is(err, blocks.ErrCorrupt) || attempt > stateAttempts {
			break
		}
		mem.db.log.Warn("the state of the database cannot be read, and is tried again", "error", err)
		_ = sleep.For(mem.db.bg.ctx, sleep.Backoff(attempt, minBackoff, maxBackoff))
	}
	if err != nil {
		mem.db.facts.Likely, mem.unread = true, !errors.Is(err, blocks.ErrCorrupt)
		for _, in := range local { // ascending by name
			mem.db.facts.Served = in
		}
		mem.db.log.Error("it is not known which version was served before the restart: the one with the greatest name on the disk is served", "error", err)
	} else {
		mem.db.facts.Served = mem.state.Served.Input
	}
	if mem.state.Marked || err != nil { // if it is not known, a version without a marker is not taken for complete
		mem.db.marked.Store(true)
	}
	if mem.pin, err = pin.Parse([]byte(mem.state.Pin)); err != nil {
		mem.db.log.Error("it is not known what was pinned before the restart; the source tells", "error", err)
	}
	mem.db.facts.Pin = mem.allowed()
	for _, c := range mem.state.Former {
		former = append(former, c.Input)
		mem.db.set.Reach(c.Name)
	}
	mem.db.set.Reach(mem.state.Served.Name)
	by := mem.failsBy()
	mem.state.Failures = slices.DeleteFunc(mem.state.Failures, func(f store.Failure) bool { return f.By != by })
	return former
}

// rejected returns the verdicts on contents that were held when they were judged last here, and that the source lists.
func (mem *memory) rejected() []store.Verdict {
	return slices.DeleteFunc(slices.Clone(mem.state.Verdicts), func(v store.Verdict) bool {
		return v.State != store.Held || !slices.Contains(mem.db.facts.Listed, v.Input)
	})
}

// faultyPause is the pause between attempts for a version that is itself faulty, unless its files change.
const faultyPause = time.Hour

// pausing reports whether a failure has a pause that is not over. One that is longer than any pause was set by a clock that was wrong.
func pausing(f store.Failure) bool {
	left, longest := time.Until(f.Next), maxBackoff
	if f.Kind == faulty {
		longest = faultyPause
	}
	return left > 0 && left <= longest
}

// failAgain makes inputs that are on the disk or in the source, and whose pause is not over, fail as they did before a restart.
func (mem *memory) failAgain() {
	for _, f := range mem.state.Failures {
		v, here := mem.db.facts.Entry(f.Input)
		if !pausing(f) || !here && !slices.Contains(mem.db.facts.Listed, f.Input) || v.Failure.Reason != "" || v.Work == version.Loading ||
			f.Input == mem.db.facts.Taken || mem.db.facts.WasServed(f.Input) {
			continue
		}
		kind := version.Internal
		if f.Kind == faulty {
			kind = version.Faulty
		}
		mem.db.facts.Add(f.Input)
		mem.db.facts.Fail(f.Input, version.Failure{Reason: f.Reason, Kind: kind})
	}
}

// recordSwitch writes the memory before a switch to a version with these totals. It reports whether the switch may follow.
func (mem *memory) recordSwitch(a version.Action, totals *store.Totals) bool {
	before := mem.state
	if old, served := before.Served, mem.db.live[a.Input].content(); old != served {
		if old.Name != "" {
			former := slices.DeleteFunc(slices.Clone(before.Former), func(c content.Content) bool { return c == old || c == served })
			former = append(former, old)
			mem.state.Former = former[max(0, len(former)-store.MaxFormer):]
		}
		mem.state.Served, mem.state.Totals = served, totals
	}
	err := mem.save()
	switch {
	case err == nil:
		return true
	case a.Back || !mem.db.facts.Pin.Allows(mem.db.facts.Current.Name) || !mem.db.isWhole():
		mem.db.log.Error("it cannot be written which version is served; a restart may go back from it", "version", a.Input.Name, "error", err)
		return true
	case mem.unsaved == 1:
		mem.db.log.Error("it cannot be written which version is served; the version before is served until it can", "version", a.Input.Name, "error", err)
	}
	mem.state = before
	return false
}

// save writes the memory. If that fails, it schedules another attempt.
func (mem *memory) save() error {
	err := mem.db.node.o.Store.SetState(mem.db.name, mem.state)
	if err == nil {
		if mem.unsaved > 0 {
			mem.db.log.Info("the state of the database can be written again")
		}
		mem.unsaved = 0
		return nil
	}
	if mem.unsaved++; mem.again.IsZero() {
		mem.again = time.Now().Add(sleep.Backoff(mem.unsaved, minBackoff, maxBackoff))
		mem.db.bg.lookAt(mem.again)
	}
	return err
}

// saveSoon writes the memory after a change that does not wait for it.
func (mem *memory) saveSoon() {
	if err := mem.save(); err != nil && mem.unsaved == 1 {
		mem.db.log.Error("the state of the database cannot be written; a restart will not know of verdicts, failures and pins since", "error", err)
	}
}

// saveAgain writes the memory again if that is due. If that succeeds, a switch that could not be written is tried again.
func (mem *memory) saveAgain() {
	if !mem.db.bg.isDue(mem.again) {
		return
	}
	mem.again = time.Time{}
	if mem.save() == nil { // otherwise the error was logged when it came first
		mem.db.facts.Unrecorded = false
	}
}

// faulty is the kind of failures that are of the version itself.
const faulty = "faulty"

// failure returns the last failure of an input, or the zero Failure. A failure is kept after the input has been loaded: if the input fails again
// soon, the pauses go on growing.
func (mem *memory) failure(in content.Input) store.Failure {
	for _, f := range mem.state.Failures {
		if f.Input == in {
			return f
		}
	}
	return store.Failure{Input: in}
}

// keepFailure replaces what the memory has of the failure of an input; one without Attempts removes it.
func (mem *memory) keepFailure(f store.Failure) {
	all := slices.DeleteFunc(slices.Clone(mem.state.Failures), func(old store.Failure) bool { return old.Input == f.Input || mem.isForgotten(old.Input) })
	if f.Attempts > 0 {
		all = append(all, f)
	}
	mem.state.Failures = all[max(0, len(all)-store.MaxFailures):]
}

// keepVerdict replaces what the memory has of the verdict on a content, and records an event if it is another one.
func (mem *memory) keepVerdict(c content.Content, v gate.Verdict) {
	before, now := mem.verdictBefore(c), v.Finding
	held := before != nil && before.State == store.Held
	switch {
	case before != nil && *before == now:
		return
	case v.State == store.Held && !held:
		mem.db.events.Held(c.Name, v.Reason)
	case v.Excused && held:
		mem.db.events.Approved(c.Name, v.Reason)
	}
	all := slices.DeleteFunc(slices.Clone(mem.state.Verdicts), func(v store.Verdict) bool { return v.Input == c.Input || mem.isForgotten(v.Input) })
	all = append(all, store.Verdict{Content: c, Finding: now})
	mem.state.Verdicts = all[max(0, len(all)-store.MaxVerdicts):]
	mem.saveSoon()
}

// failsBy returns a hash of what a failed load depends on beside its input: the options and the program.
func (mem *memory) failsBy() string {
	options, _ := json.Marshal(mem.db.loadOptions()) // it consists of numbers and texts
	return content.Sum(string(options), mem.db.node.o.Build)
}

// isForgotten reports whether a version is neither here nor in the source.
func (mem *memory) isForgotten(in content.Input) bool {
	_, here := mem.db.facts.Entry(in)
	return !here && mem.db.facts.Source == version.Known && !slices.Contains(mem.db.last.Names, in.Name)
}

// verdictBefore returns the verdict on a content in the memory; nil if there is none.
func (mem *memory) verdictBefore(c content.Content) *store.Finding {
	for _, v := range mem.state.Verdicts {
		if v.Content == c {
			return &v.Finding
		}
	}
	return nil
}

// followPin keeps a pin that was read in the source; the caller takes it into the facts. It is in force also if it cannot be written: what is excluded is not served on because the disk is full.
func (mem *memory) followPin(f pin.File) {
	mem.pin = f
	if now := mem.allowed(); !now.Equal(mem.db.facts.Pin) {
		text := "nothing is pinned, excluded or approved any more"
		if p := mem.pinStatus(); p != nil {
			text = p.String()
		}
		if f.Version != "" && now.Version == "" {
			text = "the time of the pin to " + f.Version + " is over; " + text
		}
		mem.db.events.Pinned(now.Version, text)
	}
	data, _ := f.Encode() // pin.Parse has checked it
	if encoded := string(data); encoded != mem.state.Pin {
		mem.state.Pin = encoded
		mem.saveSoon()
	}
}

// allowed returns what the pin says now.
func (mem *memory) allowed() pin.File { return mem.pin.At(time.Now()) }

// pinStatus returns the pin for the status; nil if there is none.
func (mem *memory) pinStatus() *pin.File {
	p := mem.allowed()
	if p.Same(pin.File{}) {
		return nil
	}
	p.By, p.Until, p.Reasons = mem.pin.By, mem.pin.Until, mem.pin.Reasons
	return &p
}
