package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/source"
	"sequins/store"
	"sequins/version"
	"sequins/version/discovery"
)

// A lister knows what the source has of a database, and compares what is served with it.
type lister struct {
	db     *common
	loads  *loads
	memory *memory

	listing bool      // a listing is running
	wanted  kind      // the next listing; none if none is wanted
	relook  time.Time // of the scheduled listing; zero: there is none
	// inconclusive is the number of listings that failed through the db's own fault until the first one that did not fail; from that one on, of those
	// after which another one was scheduled.
	inconclusive int

	check  check    // of what is served with the source
	others []string // the other contents that other nodes held at the last comparison with the source
}

// A kind is what a listing is for. One of a greater kind does what those of lesser kinds do.
type kind uint8

const (
	none       kind = iota
	comparison      // to compare what is served with the source, and nothing else
	repetition      // to find versions, without a refresh
	refresh         // because of a refresh
)

// want makes look list the versions.
func (ls *lister) want(k kind) { ls.wanted = max(ls.wanted, k) }

// look lists the versions in the background if that is wanted or due. While a listing runs, which may have begun too early, its end looks again.
func (ls *lister) look() {
	if ls.listing || ls.db.facts.Source == version.Gone {
		return
	}
	for _, v := range ls.db.facts.Entries {
		if v.Failure.Waits && v.Removal == version.Staying && ls.db.bg.isDue(ls.db.records[v.Input].retry) {
			ls.want(repetition) // it may be incomplete or gone
		}
	}
	if ls.db.bg.isDue(ls.relook) {
		ls.want(repetition)
	}
	c := &ls.check
	listable := ls.db.facts.Source == version.Known && !ls.db.node.health.IsFailing(ls.db.name)
	checked := listable && !c.due.IsZero() && (ls.db.bg.isDue(c.due) || c.asked != ls.db.node.asked.Load())
	if checked {
		ls.want(comparison)
	}
	ls.lookAtOthers()
	if ls.wanted == none {
		return
	}
	k, asked := ls.wanted, ls.db.node.asked.Load()
	ls.listing, ls.wanted = true, none
	q := ls.question(checked)
	q.Again, q.Only = k < refresh, k == comparison
	timeout := listTimeout
	if ls.db.facts.Source == version.Unasked {
		timeout = startTimeout
	}
	ls.db.bg.work(func() message {
		l, err := ls.ask(timeout, q)
		return func() {
			ls.retryDue()
			if k > comparison && ls.db.bg.isDue(ls.relook) {
				ls.relook = time.Time{}
			}
			ls.listed(k, l, err)
			if checked {
				ls.check.asked = asked
				ls.checkLater()
			}
		}
	})
}

// question returns the state that a listing needs; with check, the listing compares what is served, and what
// has been loaded to be served, with the source. A version that was opened from disk counts as complete only after a listing contained it.
func (ls *lister) question(check bool) discovery.Question {
	s := &ls.db.facts
	q := discovery.Question{Served: cmp.Or(s.Current, s.Before()), Active: s.Current.Name != "", Known: make(map[string]content.Input), States: make(map[content.Input]discovery.State), Manifests: ls.servedManifests(),
		Compare: make(map[content.Input]store.Manifest), Apart: make(map[content.Input]bool), Mixed: ls.db.node.o.Cluster.Mixed(), Last: ls.db.last, Pin: ls.memory.pin}
	for _, in := range s.Rejected {
		q.States[in] = discovery.State{Held: true}
	}
	for _, v := range s.Entries {
		failed := v.Failure.Reason != ""
		state := discovery.State{Failed: failed, Held: q.States[v.Input].Held || v.Verdict == version.Held || v.Stalled}
		writtenAgain := failed && slices.Contains(s.Unknown, v.Name)
		if (v.Input == s.Before() || slices.Contains(s.Listed, v.Input) || writtenAgain) && !ls.isPart(v.Input) {
			if status := s.Status(v); status != version.Available && status != version.Removing || failed {
				q.Known[v.Name] = v.Input
				state.Loading = v.Work == version.Loading && !failed
			}
			state.Settled = !failed // a failed version may have been accepted while its job paused
		}
		q.States[v.Input] = state
	}
	for in, l := range ls.db.live {
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
		if due || len(elsewhere) > 1 || q.Apart[in] || ls.db.last.Differs[in] != "" || ls.db.last.Wrong[in].Text != "" {
			q.Compare[in] = l.manifest
		}
	}
	return q
}

// isPart reports whether the content of a version that other nodes serve, which may have more files, is taken from them in place of an input.
func (ls *lister) isPart(in content.Input) bool {
	taken, here := ls.db.facts.Entry(ls.db.facts.Taken)
	return here && taken.Name == in.Name && taken.Input != in && !taken.Failure.Waits
}

// servedManifests returns the manifests of contents that are served, here or by other nodes, by the names of their versions. A content that can neither
// be served nor loaded is left out.
func (ls *lister) servedManifests() map[string][]store.Manifest {
	all := make(map[string][]store.Manifest)
	for _, v := range ls.db.facts.Entries {
		served := ls.db.facts.WasServed(v.Input)
		if !served && v.Input != ls.db.facts.Taken || v.Removal != version.Staying || v.Failure.Waits && (!served || v.Coverage < version.Partial) {
			continue
		}
		if m := ls.loads.knownManifest(v.Input); m != nil {
			all[v.Name] = append(all[v.Name], *m)
		}
	}
	return all
}

// listed takes the answer of a listing, and schedules another one if a version needs it.
func (ls *lister) listed(k kind, l discovery.Listing, err error) {
	d := ls.db
	ls.listing = false
	known := d.facts.Source == version.Known
	switch {
	case known:
	case err == nil:
		ls.inconclusive = 0
	case errors.Is(err, fs.ErrPermission), source.Lasting(err):
		ls.inconclusive = passingAttempts
	case !d.node.health.IsFailing(""): // a source that cannot be listed at all does not count against the db
		ls.inconclusive++
	}
	if err != nil {
		ls.unreadable()
		return
	}
	if l.Unfinished != "" && l.Unfinished != d.last.Unfinished {
		d.log.Info("version is not complete yet", "reason", l.Unfinished)
	}
	for in, f := range l.Wrong {
		if f.Lasts && !d.last.Wrong[in].Lasts {
			d.log.Error(f.Text)
		}
	}
	for in, text := range l.Differs {
		if d.last.Differs[in] == "" {
			d.log.Warn(text)
		}
	}
	d.last = l
	if l.Marked && !ls.memory.state.Marked {
		ls.memory.state.Marked = true
		ls.memory.saveSoon()
	}
	ls.memory.followPin(l.Pin)
	if d.facts.Source == version.Unasked || k == refresh {
		d.facts.OpenAgain(d.facts.Before()) // other nodes may have come back with it
		d.facts.DeleteAgain()
	}
	d.facts.Pin, d.facts.Keep = ls.memory.allowed(), d.options().KeepVersions
	d.facts.List(l.Inputs, l.Unknown)
	if !known {
		ls.memory.failAgain() // they are not tried before they are due
	}
	scheduled := !ls.relook.IsZero()
	if l.Next.IsZero() || scheduled && !l.Next.Before(ls.relook) {
		return
	}
	if !scheduled {
		ls.inconclusive++
	}
	ls.relook = l.Next
}

// retryDue lets the versions be loaded again whose pause is over.
func (ls *lister) retryDue() {
	for _, v := range ls.db.facts.Entries {
		if r := ls.db.records[v.Input]; v.Failure.Waits && r != nil && !time.Now().Before(r.retry) {
			r.reloaded = nil
			ls.db.facts.Retry(v.Input)
		}
	}
}

// unreadable records that the source could not be listed, or does not have the database. Once it has been listed, that only ends a pin whose time
// is over.
func (ls *lister) unreadable() {
	if ls.db.facts.Source == version.Unasked {
		ls.db.facts.Source = version.Away
	}
	if now := ls.memory.allowed(); !now.Equal(ls.db.facts.Pin) {
		ls.memory.followPin(ls.memory.pin)
		ls.db.facts.Pin = now
	}
}

// ask lists the newest versions. The timeout includes the wait for a slot, which limits how long all databases together wait for a hanging source.
func (ls *lister) ask(timeout time.Duration, q discovery.Question) (l discovery.Listing, err error) {
	ctx, cancel := context.WithTimeout(ls.db.bg.ctx, timeout)
	defer cancel()
	select {
	case ls.db.node.listings <- struct{}{}:
		l, err = ls.existing(ctx, q)
		<-ls.db.node.listings
	case <-ctx.Done():
		err = fmt.Errorf("waiting for other databases to be listed: %w", ctx.Err())
	}
	if err != nil {
		ls.db.node.sourceFailed(ctx, timeout, ls.db.name, err)
	} else {
		ls.db.node.health.Read(ls.db.name, slices.Concat(l.Remarks, slices.Sorted(maps.Values(l.LeftOut))))
	}
	return l, err
}

// existing finds the newest complete versions in the source.
func (ls *lister) existing(ctx context.Context, q discovery.Question) (discovery.Listing, error) {
	options := ls.db.loadOptions()
	found, err := discovery.Finder{
		Source: ls.db.node.o.Source, DB: ls.db.name, Log: ls.db.log, Settle: ls.db.node.reloadable.Load().Settle,
		Require: options.RequireSuccess, Auto: ls.db.options().AutoSuccess, Input: options.Input,
		Begun: func(in content.Input) bool { // maybe before a restart: the version was complete then, and has not changed
			_, err := ls.db.node.o.Store.Dir(ls.db.name, in)
			return err == nil
		},
	}.Find(ctx, q)
	if found.Marked {
		ls.db.marked.Store(true)
	}
	return found, err
}

// tried reports whether all versions of a db are held or have failed, here or, for long, on the nodes that they need, none exists, or they cannot be listed and
// never could, for a reason of the db's own. A first failure of the source or of this node does not
// count, nor does a db whose versions will be listed again shortly to see whether they are complete.
func (ls *lister) tried() bool {
	read := ls.db.facts.Source == version.Known
	if ls.inconclusive >= passingAttempts && !read {
		return true
	}
	if ls.inconclusive < passingAttempts && !ls.relook.IsZero() {
		return false
	}
	for _, in := range ls.db.facts.Listed {
		v, _ := ls.db.facts.Entry(in)
		passing := v.Failure.Kind == version.Passing || v.Failure.Kind == version.NoRoom
		untried := v.Failure.Reason == "" || passing && ls.memory.failure(in).Attempts < passingAttempts
		if untried && !v.Stalled && !slices.Contains(ls.db.facts.Rejected, in) { // a stalled one lacks what other nodes have to load
			return false
		}
	}
	return read
}

// Two nodes can hold different contents of a version: if it has no marker and its job paused for longer than settle, or if it was modified. Replicas
// of one content are not counted and not asked by nodes that hold the other. A node that sees another content compares its own with the source, as it
// does after a switch (see check). If the source has another input, the node loads that, and answers clients from its own content until then.

// lookAtOthers lists the versions again if what other nodes hold of a version has changed since the last comparison.
func (ls *lister) lookAtOthers() {
	if ls.db.facts.Source == version.Unasked {
		return
	}
	var others []string
	for in, l := range ls.db.live {
		for c := range l.Elsewhere() {
			if c.Input != in && in.Name >= ls.db.facts.Current.Name {
				others = append(others, c.Name+" "+c.Code())
			}
		}
	}
	slices.Sort(others)
	if len(others) > 0 && !slices.Equal(others, ls.others) {
		ls.want(repetition)
	}
	ls.others = others
}

// After a switch, the files of the version in the source are compared with those that it was loaded from: copy tools write _SUCCESS first,
// writers pause, and people change files. The pauses between comparisons double, also across reloads of one name, so that a job
// that rewrites its files again and again does not load the node again and again. Every node does it: the files of a local source are
// its own, and a node that cannot list them does not keep the others from it.

const (
	leastCheckPause = time.Second
	// longCheckPause is the longest of the doubling pauses; those after it are dailyCheck.
	longCheckPause = time.Hour
	dailyCheck     = 24 * time.Hour
)

// check is when a database compares what it serves with the source.
type check struct {
	name  string // of the served version, in the source
	pause time.Duration
	due   time.Time // zero: never
	asked int64     // requests to refresh that have been answered, see Node.asked
}

// checkSwitched schedules the first comparison after a switch to a version.
func (ls *lister) checkSwitched(name string) {
	if name != ls.check.name {
		ls.check.name, ls.check.pause = name, 0
	}
	ls.checkLater()
}

// checkLater schedules the next comparison.
func (ls *lister) checkLater() {
	switch c := &ls.check; {
	case c.pause == 0:
		c.pause = max(leastCheckPause, ls.db.node.reloadable.Load().Settle)
	case c.pause < longCheckPause:
		c.pause = min(2*c.pause, longCheckPause)
	default:
		c.pause = dailyCheck
	}
	ls.check.due = time.Now().Add(ls.check.pause)
}
