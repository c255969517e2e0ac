package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"sequins/discovery"
	"sequins/internal/content"
	"sequins/source"
	"sequins/store"
	"sequins/version"
)

// A listing is the answer to a question about the versions in the source.
type listing struct {
	discovery.Listing
	again   bool  // see discovery.Question
	checked bool  // what is served was compared with the source
	asked   int64 // see check
	err     error
}

// startListing lists the versions in the background. If a listing is running, another one follows,
// because the running one may have begun too early.
func (d *db) startListing(again bool) {
	if d.listing {
		d.again = d.again || !again
		return
	}
	d.beginListing(again, false)
}

// startCheck compares what is served with the source, unless a listing runs: another one follows then. New versions are not looked for, as
// nobody has asked for that.
func (d *db) startCheck() {
	if !d.listing {
		d.beginListing(true, true)
	}
}

// beginListing begins a listing; again and only are those of a question.
func (d *db) beginListing(again, only bool) {
	d.listing = true
	checked, asked := d.checking(), d.node.asked.Load()
	q := d.question(checked)
	q.Again, q.Only = again, only
	timeout := listTimeout
	if d.facts.Source == version.Unasked {
		timeout = startTimeout
	}
	d.work(func() message {
		l := d.ask(timeout, q)
		l.checked, l.asked = checked, asked
		return l
	})
}

// question returns the state that a listing needs; with check, the listing compares what is served, and what
// has been loaded to be served, with the source. A version that was opened from disk counts as complete only after a listing contained it.
func (d *db) question(check bool) discovery.Question {
	s := &d.facts
	q := discovery.Question{Current: s.Current, Served: s.Before(), Known: make(map[string]content.Input), Loading: make(map[content.Input]bool), Held: make(map[content.Input]bool),
		Settled: make(map[content.Input]bool), Failed: make(map[content.Input]bool), Manifests: d.servedManifests(), Compare: make(map[content.Input]store.Manifest),
		Apart: make(map[content.Input]bool), Mixed: d.node.o.Cluster.Mixed(), Last: d.last, Pin: d.pin}
	for _, v := range s.Entries {
		failed := v.Failure.Reason != ""
		q.Failed[v.Input], q.Held[v.Input] = failed, v.Verdict == version.Held
		writtenAgain := failed && slices.Contains(s.Unknown, v.Name)
		if v.Input != s.Before() && !slices.Contains(s.Listed, v.Input) && !writtenAgain || d.isPart(v.Input) {
			continue
		}
		if status := s.Status(v); status != version.Available && status != version.Removing || failed {
			q.Known[v.Name] = v.Input
			q.Loading[v.Input] = v.Work == version.Loading && !failed
		}
		q.Settled[v.Input] = !failed // a failed version may have been accepted while its job paused
	}
	for _, in := range s.Rejected {
		q.Held[in] = true
	}
	for in, l := range d.live {
		v, _ := s.Entry(in)
		if v.Removal != version.Staying || in.Name < s.Current.Name {
			continue
		}
		elsewhere := l.Elsewhere()
		_, shared := elsewhere[l.content()]
		q.Apart[in] = len(elsewhere) > 0 && !shared
		another := func(e version.Entry) bool { return e.Name == in.Name && e.Input != in && e.Removal == version.Staying }
		// The source may list another input, or the files of the current one may have changed, so that a block cannot be loaded again.
		due := check && v.Failure.Reason == "" || in == s.Current && (v.Failure.Reason != "" || slices.ContainsFunc(s.Entries, another))
		if due || len(elsewhere) > 1 || q.Apart[in] || d.last.Differs[in] != "" || d.last.Wrong[in] != "" {
			q.Compare[in] = l.manifest
		}
	}
	return q
}

// servedManifests returns the manifests of contents that are served, here or by other nodes, by the names of their versions. A content that can neither
// be served nor loaded is left out.
func (d *db) servedManifests() map[string][]store.Manifest {
	all := make(map[string][]store.Manifest)
	for in, m := range d.supersets {
		if v, _ := d.facts.Entry(in); !v.Failure.Waits && m.Version != "" {
			all[in.Name] = append(all[in.Name], m)
		}
	}
	for _, v := range d.facts.Entries {
		if _, added := d.supersets[v.Input]; added || !d.facts.WasServed(v.Input) || v.Removal != version.Staying ||
			v.Failure.Waits && v.Coverage < version.Partial {
			continue
		}
		if m := d.knownManifest(v.Input); m != nil {
			all[v.Name] = append(all[v.Name], *m)
		}
	}
	return all
}

// tell implements message.
func (l listing) tell(d *db) {
	d.listing, d.relisting = false, false
	first, before := d.facts.Source == version.Unasked, d.last
	floor := d.facts.Floor()
	same := slices.Equal(l.After(floor), d.last.After(floor)) && slices.Equal(l.Unknown, d.last.Unknown)
	if l.err == nil {
		d.followPin(l.Pin)
		same = same && d.allowed().Equal(d.facts.Pin)
	}
	d.takeListing(l)
	d.countFailure(l.err)
	switch {
	case l.err == nil && (first || !l.again || !same):
		if first || !l.again {
			d.facts.OpenAgain(d.facts.Before()) // other nodes may have come back with it
			d.facts.DeleteAgain()
		}
		d.facts.Pin, d.facts.Keep = d.allowed(), d.keep()
		d.list(l.Inputs, l.Unknown)
		d.lookAtAll() // which the pin may excuse
	case l.err != nil:
		d.unreadable()
	}
	if l.err == nil {
		d.reportWrong(before, l.Listing)
	}
	if l.checked {
		d.check.asked = l.asked
		d.checkLater()
	}
	retries := d.due
	d.due = nil
	for _, in := range retries {
		if r := d.records[in]; r != nil {
			r.reloaded = nil
			d.facts.Retry(in)
			d.decide()
		}
	}
	if d.again {
		d.again = false
		d.startListing(false)
	}
	if d.checking() {
		d.startCheck()
	}
	d.lookAtOthers()
}

// list takes the inputs in the source into the facts. Those that failed before a restart are not tried before they are due.
func (d *db) list(inputs []content.Input, unknown []string) {
	first := d.facts.Source != version.Known
	d.facts.List(inputs, unknown)
	if first {
		d.failAgain()
	}
	d.decide()
}

// unreadable records that the source could not be listed, or does not have the database. It has no effect on versions once it has been listed.
func (d *db) unreadable() {
	if d.facts.Source == version.Unasked {
		d.facts.Source = version.Away
		d.decide()
	}
	d.endPin()
}

// countFailure counts consecutive failures of listings. A source that cannot be listed at all does not
// count against the db.
func (d *db) countFailure(err error) {
	switch {
	case err == nil:
		d.unlistable = 0
	case errors.Is(err, fs.ErrPermission), source.Lasting(err):
		d.unlistable = passingAttempts
	case !d.node.health.RootFailing():
		d.unlistable++
	}
}

// takeListing stores the result of a listing, and schedules another one if a version needs it.
func (d *db) takeListing(l listing) {
	if l.err != nil {
		return
	}
	for _, name := range l.Late(d.last, d.facts.Current.Name) {
		d.log.Warn("a version has appeared whose name is less than that of the version that is served, and is not loaded: the greatest name, byte by byte, is the newest",
			"version", name, "served", d.facts.Current.Name)
	}
	if l.Unfinished != "" && l.Unfinished != d.unfinished {
		d.log.Info("version is not complete yet", "reason", l.Unfinished)
	}
	d.unfinished, d.last = l.Unfinished, l.Listing
	if l.Marked && !d.memory.Marked {
		d.memory.Marked = true
		d.saveSoon()
	}
	if l.Next.IsZero() || d.relooking() && !l.Next.Before(d.relookAt) {
		return
	}
	if d.relooking() {
		d.cancelRelook() // the new one is earlier
	} else {
		d.relooks++
	}
	d.relookAt, d.cancelRelook = l.Next, d.tellAt(l.Next, relook{l.Next})
}

// relooking reports whether another listing is scheduled.
func (d *db) relooking() bool { return !d.relookAt.IsZero() }

// A relook reports that a scheduled listing is due.
type relook struct{ at time.Time }

// tell implements message.
func (r relook) tell(d *db) {
	if !r.at.Equal(d.relookAt) {
		return // replaced by an earlier one
	}
	d.cancelRelook()
	d.relookAt = time.Time{}
	if d.facts.Source != version.Gone {
		d.relisting = true
		d.startListing(true)
	}
}

// ask lists the newest versions that are newer than current. The timeout includes the wait for a slot,
// which limits how long all databases together wait for a hanging source.
func (d *db) ask(timeout time.Duration, q discovery.Question) listing {
	l := listing{again: q.Again}
	ctx, cancel := context.WithTimeout(d.ctx, timeout)
	defer cancel()
	select {
	case d.node.listings <- struct{}{}:
		l.Listing, l.err = d.existing(ctx, q)
		<-d.node.listings
	case <-ctx.Done():
		l.err = fmt.Errorf("waiting for other databases to be listed: %w", ctx.Err())
	}
	if l.err != nil {
		d.node.sourceFailed(ctx, d.name, l.err)
	} else {
		d.node.health.Read(d.name, slices.Concat(l.Remarks, slices.Sorted(maps.Values(l.LeftOut))), d.node.log)
	}
	return l
}

// existing finds the newest complete versions in the source.
func (d *db) existing(ctx context.Context, q discovery.Question) (discovery.Listing, error) {
	r := d.node.reloadable.Load()
	options := d.node.loadOptions(d.name)
	found, err := discovery.Finder{
		Source: d.node.o.Source, DB: d.name, Log: d.log, Settle: r.Settle,
		Require: options.RequireSuccess, Auto: r.AutoSuccess(d.name), Input: options.Input, Begun: d.hasBegunBefore,
	}.Find(ctx, q)
	if found.Marked {
		d.node.success.Store(d.name, true)
	}
	return found, err
}

// hasBegunBefore reports whether a load of an input has begun, maybe before a restart. The version was complete then, and has not changed.
func (d *db) hasBegunBefore(in content.Input) bool {
	_, err := d.node.o.Store.Dir(d.name, in)
	return err == nil
}
