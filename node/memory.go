package node

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"sequins/gate"
	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/pin"
	"sequins/store"
	"sequins/transfer"
	"sequins/version"
)

// What a database has to remember over restarts is in its memory (store.State). It is written before a switch, so that a
// restart does not go back. If that fails, for example on a full disk, the node continues to serve the previous
// version and retries the switch with growing pauses. Without a previous version, if parts of it can no longer be read, or if the pin
// does not allow it, the node switches, and retries only the writing.

// remember reads the memory, and takes it into the facts. It returns the inputs that were active before the one that was served. local are those on
// the disk.
func (d *db) remember(local []content.Input) (former []content.Input) {
	var err error
	d.memory, err = d.node.o.Store.State(d.name)
	if err != nil {
		d.facts.Likely = true
		for _, in := range local { // ascending by name
			d.facts.Served = in
		}
		d.log.Error("it is not known which version was served before the restart: the one with the greatest name on the disk is served", "error", err)
	} else {
		d.facts.Served = d.memory.Served.Input
	}
	if d.memory.Marked || err != nil { // if it is not known, a version without a marker is not taken for complete
		d.node.success.Store(d.name, true)
	}
	if d.pin, err = pin.Parse([]byte(d.memory.Pin)); err != nil {
		d.log.Error("it is not known what was pinned before the restart; the source tells", "error", err)
	}
	d.facts.Pin = d.allowed()
	for _, c := range d.memory.Former {
		former = append(former, c.Input)
	}
	d.memory.Failures = slices.DeleteFunc(d.memory.Failures, func(f store.Failure) bool { return f.By != d.failsBy() })
	return former
}

// rejected returns the inputs that were held when they were judged last, and that the source lists.
func (d *db) rejected() (all []content.Input) {
	for _, v := range d.memory.Verdicts {
		if v.State == store.Held && v.Rules == d.rules.Fingerprint() && !d.facts.Pin.Excuses(v.Name) && slices.Contains(d.facts.Listed, v.Input) {
			all = append(all, v.Input)
		}
	}
	return all
}

// failAgain makes inputs that are on the disk or in the source fail as they did before a restart, until they are due.
func (d *db) failAgain() {
	for _, f := range d.memory.Failures {
		v, here := d.facts.Entry(f.Input)
		if !here && !slices.Contains(d.facts.Listed, f.Input) || v.Failure.Attempts > 0 || v.Work == version.Loading ||
			f.Input == d.facts.Taken || d.facts.WasServed(f.Input) {
			continue
		}
		kind := version.Internal
		if f.Kind == faulty {
			kind = version.Faulty
		}
		d.facts.Add(f.Input)
		d.facts.Fail(f.Input, version.Failure{Reason: f.Reason, Kind: kind, Attempts: f.Attempts - 1})
	}
}

// take takes what other nodes serve into the facts.
func (d *db) take(c content.Content) {
	if c.Name == "" || c.Input == d.facts.Taken {
		return
	}
	d.facts.Taken = c.Input
	if c.Name > d.facts.Before().Name {
		d.log.Info("other nodes serve a version, which this node serves before newer ones", "version", c.Name)
	}
}

// servedElsewhere returns what most other nodes serve of a database (transfer.Latest); zero if none serves it, or none answers.
func (n *Node) servedElsewhere(ctx context.Context, db string) content.Content {
	serving := n.elsewhere.Load()
	if serving == nil {
		asked := n.askServing(ctx)
		serving = &asked
	}
	latest, _ := transfer.Latest(*serving, db)
	return latest
}

// servingTimeout limits how long other nodes are asked what they serve.
const servingTimeout = 3 * time.Second

// askServing asks the other nodes what they serve, by their addresses and the names of databases.
func (n *Node) askServing(ctx context.Context) map[string]map[string]content.Content {
	addrs := n.peers()
	if len(addrs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, servingTimeout)
	defer cancel()
	return n.transfer.Serving(ctx, addrs)
}

// contents returns what this node serves of each database, or served before its restart, for other nodes.
func (n *Node) contents() map[string]content.Content {
	all := make(map[string]content.Content)
	for name, d := range *n.catalog.Load() {
		if c := d.view.Load().serving; c.Name != "" {
			all[name] = c
		}
	}
	return all
}

// recordSwitch writes the memory before a switch. It reports whether the switch may follow.
func (d *db) recordSwitch(a version.Action) bool {
	before := d.memory
	d.rememberSwitch(d.live[a.Input])
	err := d.save()
	switch {
	case err == nil:
		return true
	case a.Back || !d.facts.Pin.Allows(d.facts.Current.Name) || !d.mayStay():
		d.log.Error("it cannot be written which version is served; a restart may go back from it", "version", a.Input.Name, "error", err)
		return true
	case d.unsaved == 1:
		d.log.Error("it cannot be written which version is served; the version before is served until it can", "version", a.Input.Name, "error", err)
	}
	d.memory = before
	return false
}

// rememberSwitch changes the memory for a switch to a version.
func (d *db) rememberSwitch(l *live) {
	served := l.content()
	if old := d.memory.Served; old != served && old.Name != "" {
		former := slices.DeleteFunc(slices.Clone(d.memory.Former), func(c content.Content) bool { return c == old || c == served })
		former = append(former, old)
		d.memory.Former = former[max(0, len(former)-store.MaxFormer):]
	}
	if d.memory.Served != served {
		d.memory.Served, d.memory.Totals = served, d.totals(l)
	}
}

// mayStay reports whether all of the current version can be read, here or from other nodes.
func (d *db) mayStay() bool { return d.facts.Current.Name != "" && d.isWhole() }

// save writes the memory. If that fails, it schedules another attempt.
func (d *db) save() error {
	err := d.node.o.Store.SetState(d.name, d.memory)
	if err == nil {
		if d.unsaved > 0 {
			d.log.Info("the state of the database can be written again")
		}
		d.unsaved = 0
		return nil
	}
	if d.unsaved++; !d.saveDue {
		d.saveDue = true
		d.tellAfter(sleep.Backoff(d.unsaved, minBackoff, maxBackoff), saveAgain{})
	}
	return err
}

// saveSoon writes the memory after a change that does not wait for it.
func (d *db) saveSoon() {
	if err := d.save(); err != nil && d.unsaved == 1 {
		d.log.Error("the state of the database cannot be written; a restart will not know of verdicts, failures and pins since", "error", err)
	}
}

// saveAgain reports that another attempt to write the memory is due.
type saveAgain struct{}

// tell implements message.
func (saveAgain) tell(d *db) {
	d.saveDue = false
	if d.facts.Unrecorded {
		d.switchAgain()
	}
	if !d.saveDue { // no switch has failed again
		_ = d.save() // the error was logged when it came first
	}
}

// switchAgain retries a switch that could not be written.
func (d *db) switchAgain() {
	d.facts.Unrecorded = false
	for in := range d.live {
		d.look(in)
	}
}

// unknownAbsence is the value of db.absent until the follower has listed the databases.
const unknownAbsence = -1

// keepAbsence writes since when the source lacks the database, which the follower has found.
func (d *db) keepAbsence() {
	at := d.absent.Load()
	if at == unknownAbsence {
		return
	}
	since := time.Time{}
	if at != 0 {
		since = time.Unix(at, 0).UTC()
	}
	if !since.Equal(d.memory.Absent) {
		d.memory.Absent = since
		d.saveSoon()
	}
}

// faulty is the kind of failures that are of the version itself.
const faulty = "faulty"

// maxRemembered limits the failures and the verdicts in the memory: the newest are kept.
const maxRemembered = 100

// keepFailure replaces what the memory has of the failure of an input; nil removes it.
func (d *db) keepFailure(in content.Input, f *store.Failure) {
	all := slices.DeleteFunc(slices.Clone(d.memory.Failures), func(f store.Failure) bool { return f.Input == in || d.isForgotten(f.Input) })
	if f != nil {
		all = append(all, *f)
	}
	d.memory.Failures = all[max(0, len(all)-maxRemembered):]
}

// keepVerdict replaces what the memory has of the verdict on a content, and records an event if it is another one.
func (d *db) keepVerdict(c content.Content, v gate.Verdict) {
	before, now := d.verdictBefore(c), v.Record()
	held := before != nil && before.State == gate.Held
	switch {
	case before != nil && *before == now:
		return
	case v.State == gate.Held && !held:
		d.events.Held(c.Name, v.Reason)
	case v.Excused && held:
		d.events.Approved(c.Name, v.Reason)
	}
	all := slices.DeleteFunc(slices.Clone(d.memory.Verdicts), func(v store.Verdict) bool { return v.Input == c.Input || d.isForgotten(v.Input) })
	all = append(all, store.Verdict{Content: c, State: string(now.State), Reason: now.Reason, Rules: now.Rules, Against: now.Against, Vetoed: now.Vetoed})
	d.memory.Verdicts = all[max(0, len(all)-maxRemembered):]
	d.saveSoon()
}

// failsBy returns a hash of what a failed load depends on beside its input: the options and the program.
func (d *db) failsBy() string {
	options, _ := json.Marshal(d.node.loadOptions(d.name)) // it consists of numbers and texts
	return content.Sum(string(options), d.node.o.Build)
}

// isForgotten reports whether a version is neither here nor in the source.
func (d *db) isForgotten(in content.Input) bool {
	_, here := d.facts.Entry(in)
	return !here && d.facts.Source == version.Known && !slices.Contains(d.last.Names, in.Name)
}

// verdictBefore returns the verdict on a content in the memory; nil if there is none.
func (d *db) verdictBefore(c content.Content) *gate.Finding {
	for _, v := range d.memory.Verdicts {
		if v.Content == c {
			return &gate.Finding{State: gate.State(v.State), Reason: v.Reason, Rules: v.Rules, Against: v.Against, Vetoed: v.Vetoed}
		}
	}
	return nil
}
