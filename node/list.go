package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"sequins/internal/sleep"
	"sequins/load"
	"sequins/source"
	"sequins/store"
	"sequins/version"
)

const (
	// maxPromising is how many versions are looked at in search of some that exist,
	// and of which nothing is wrong but that they have to be looked at again. Those
	// that are unfinished or have failed do not count: they must not hide good ones.
	maxPromising = 100
	// maxCandidates is how many versions that have not failed are listed.
	maxCandidates = 3
	// maxLook bounds how long it may take to look at one version.
	maxLook = 20 * time.Second
)

// A question is what a listing has to know.
type question struct {
	current string            // older versions are of no interest
	served  string            // before a restart: it was complete then
	ids     map[string]string // see newest; the others of a question are ids, too
	known   map[string]bool   // versions that exist: they are not looked at
	failed  map[string]bool   // versions that could not be loaded
	settled map[string]bool   // versions that have been taken before: one look is enough
	// other are the plans by which this node holds versions of which others say that
	// they hold them by another plan: one of the two has seen other files.
	other map[string]store.Manifest
	last  listing // the last one
	again bool    // only versions without a marker are the reason
}

// A look is the first of a row of looks at a version without a marker that have
// found the same, and how many looks at the version have failed since the last one
// that did not.
type look struct {
	fingerprint [sha256.Size]byte
	at          time.Time // when it had ended
	failures    int
	failure     string    // of the last one
	retry       time.Time // when to look again after that
}

// A listing is what was found out about the versions in the source. It is never
// changed, only replaced.
type listing struct {
	versions   []string // those that exist, ascending; no more than are needed
	unknown    []string // those that could not be looked at
	changed    []string // those whose files are not those of this node's plan, which is in compared
	compared   map[string]store.Manifest
	alone      []string          // those that others hold, and nobody by this node's plan, though that is of the files in the source
	unfinished string            // why the newest that does not exist yet does not
	leftOut    map[string]string // a sentence for each version of which something is left out
	looks      map[string]look   // at versions that are looked at again
	next       time.Time         // when to look again; zero: at the next refresh
	again      bool              // as in the question
	err        error
}

func known(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// startListing has the versions listed in the background. If they are being
// listed already, that may have begun too early, so it is done again.
func (d *db) startListing(again bool) {
	if d.listing {
		d.again = d.again || !again
		return
	}
	d.listing = true
	q := d.question()
	q.again = again
	timeout := listTimeout
	if d.state.Looking {
		timeout = startTimeout
	}
	d.work(func() message { return d.list(timeout, q) })
}

// question returns what a listing has to know of the state. A version that was
// opened from the disk is not taken for one that exists before it was in a listing.
func (d *db) question() question {
	s := d.state
	q := question{current: s.Current, served: s.Served, known: make(map[string]bool), settled: make(map[string]bool),
		failed: make(map[string]bool), other: make(map[string]store.Manifest), ids: d.newest(), last: d.last}
	for _, v := range s.Entries {
		q.failed[v.Name] = v.Reason != ""
		if v.Name != s.Served && !slices.Contains(s.Listed, v.Name) {
			continue
		}
		q.known[v.Name] = v.Status == version.Building || v.Status == version.Prepared || v.Status == version.Active
		q.settled[v.Name] = v.Reason == "" // what failed may have been taken while its job paused
	}
	for _, id := range q.ids {
		if l := d.live[id]; l != nil && len(d.node.o.Cluster.OtherPlans(d.name, id)) > 0 {
			q.other[id] = l.manifest
		}
	}
	return q
}

// id returns the id of the newest revision of a version.
func (q *question) id(name string) string {
	if id, found := q.ids[name]; found {
		return id
	}
	return name
}

// tell implements message. What has failed is tried again at a refresh, and not
// whenever a version without a marker is looked at again.
func (l listing) tell(d *db) {
	d.listing = false
	first, before := d.state.Looking, d.last
	l = d.revised(l)
	same := slices.Equal(after(l.versions, d.state.Current), after(d.last.versions, d.state.Current)) && slices.Equal(l.unknown, d.last.unknown)
	d.take(l)
	d.countFailure(l.err)
	switch {
	case l.err == nil && (first || !l.again || !same):
		d.handle(version.Listed{Versions: l.versions, Unknown: l.unknown, Relook: l.again && !first})
	case l.err != nil && first:
		d.handle(version.Unlisted{})
	}
	if l.err == nil {
		d.reportAlone(before, l)
	}
	retries := d.due
	d.due = nil
	for _, name := range retries {
		d.handle(version.Retry{Version: name})
	}
	if d.again {
		d.again = false
		d.startListing(false)
	}
	d.lookAtOthers()
}

// countFailure takes note of how a listing has ended. That the source as a whole
// cannot be listed is not the db's fault.
func (d *db) countFailure(err error) {
	switch {
	case err == nil:
		d.unlistable = 0
	case errors.Is(err, fs.ErrPermission):
		d.unlistable = passingAttempts
	case !d.node.health.rootFailing():
		d.unlistable++
	}
}

// after returns those of ascending names that are greater than current.
func after(names []string, current string) []string {
	i, found := slices.BinarySearch(names, current)
	if found {
		i++
	}
	return names[i:]
}

// take keeps what a listing has found out, and has the versions listed again
// when one needs another look.
func (d *db) take(l listing) {
	if l.err != nil {
		return
	}
	d.unfinished, d.last = l.unfinished, l
	if l.next.IsZero() || d.relooking() && !l.next.Before(d.relookAt) {
		return
	}
	if d.relooking() {
		d.cancelRelook() // it would come too late
	} else {
		d.relooks++
	}
	ctx, cancel := context.WithCancel(d.ctx)
	d.relookAt, d.cancelRelook = l.next, cancel
	d.work(func() message {
		sleep.For(ctx, time.Until(l.next)) //nolint:errcheck // a relook that was cancelled is not due
		return relook{l.next}
	})
}

// relooking reports whether the versions will be listed again soon.
func (d *db) relooking() bool { return !d.relookAt.IsZero() }

// A relook is due at versions that are not known to be complete.
type relook struct{ at time.Time }

// tell implements message.
func (r relook) tell(d *db) {
	if !r.at.Equal(d.relookAt) {
		return // an earlier one has taken its place
	}
	d.cancelRelook()
	d.relookAt = time.Time{}
	if !d.state.Gone {
		d.startListing(true)
	}
}

// list lists the newest versions that are newer than current. The timeout holds
// from now on, not from its turn: that bounds how long all databases together
// wait for a source that hangs.
func (d *db) list(timeout time.Duration, q question) listing {
	l := listing{}
	ctx, cancel := context.WithTimeout(d.ctx, timeout)
	defer cancel()
	select {
	case d.node.listings <- struct{}{}:
		l = d.existing(ctx, q)
		<-d.node.listings
	case <-ctx.Done():
		l.err = fmt.Errorf("waiting for other databases to be listed: %w", ctx.Err())
	}
	l.again = q.again
	if l.err != nil {
		d.node.sourceFailed(ctx, d.name, l.err)
	} else {
		d.node.sourceRead(ctx, d.name, slices.Sorted(maps.Values(l.leftOut)))
	}
	return l
}

// existing finds the newest versions that exist, which are those whose jobs are
// done: a few that have not failed, so that there is another one if the newest
// cannot be loaded, and all that are newer than those.
func (d *db) existing(ctx context.Context, q question) listing {
	names, err := d.node.o.Source.Versions(ctx, d.name)
	if err != nil {
		return listing{err: err}
	}
	r := d.node.reloadable.Load()
	o := observer{d: d, question: q, names: names, now: time.Now(), settle: r.Settle, auto: r.AutoSuccess(d.name), limit: maxLook,
		found: listing{looks: map[string]look{}, leftOut: map[string]string{}, compared: q.other}}
	if deadline, ok := ctx.Deadline(); ok {
		o.limit = min(o.limit, time.Until(deadline)/3)
	}
	for name, s := range q.last.leftOut {
		if q.known[q.id(name)] {
			o.found.leftOut[name] = s
		}
	}
	for _, name := range slices.Backward(names) {
		if q.id(name) <= q.current {
			break
		}
		if o.good >= maxCandidates && q.id(name) != q.served {
			continue
		}
		if err := o.observe(ctx, name); err != nil {
			return listing{err: err}
		}
	}
	slices.Reverse(o.found.versions)
	o.compare(ctx)
	return o.found
}

// An observer looks at the versions of a db for a listing.
type observer struct {
	question
	d      *db
	names  []string // all versions
	now    time.Time
	settle time.Duration
	auto   bool          // a version with _SUCCESS makes it required of all
	limit  time.Duration // of one look
	looked int           // versions
	// promising are versions that were looked at and may be good, good those that
	// exist and have not failed.
	promising, good int
	found           listing
}

// observe adds a version to the listing if it exists.
func (o *observer) observe(ctx context.Context, name string) error {
	l, looked := o.last.looks[name]
	if looked {
		o.found.looks[name] = l // so that a version that fails and has not changed need not settle again
	}
	id := o.id(name)
	if !o.failed[id] && o.known[id] {
		o.good++
		o.found.versions = append(o.found.versions, id)
		return nil
	}
	if o.again && o.now.Before(l.retry) {
		o.leaveUnknown(name, l)
		return nil
	}
	if !o.mayLook(ctx) {
		o.found.unknown = append(o.found.unknown, id)
		return nil
	}
	reason, err := o.missing(ctx, name)
	if err != nil {
		return o.observeFailed(ctx, name, err)
	}
	if l, looked := o.found.looks[name]; looked {
		o.found.looks[name] = look{fingerprint: l.fingerprint, at: l.at}
	}
	if reason == "" {
		o.found.versions = append(o.found.versions, id)
		if !o.failed[id] {
			o.good++
		}
		return nil
	}
	o.d.log.Debug("version does not exist yet", "version", name, "reason", reason)
	if o.found.unfinished == "" {
		o.found.unfinished = fmt.Sprintf("%s: %s", name, reason)
	}
	return nil
}

// observeFailed takes note of a look that has failed. A version that is at fault
// itself is listed, and loading it reports what is wrong. An error that may pass
// leaves it open whether the version is complete: it is looked at again soon. Only
// if the source cannot be read at all, that is an error of the whole listing.
func (o *observer) observeFailed(ctx context.Context, name string, err error) error {
	id := o.id(name)
	if source.Lasting(err) || id == o.served {
		o.d.log.Warn("version cannot be looked at; it is loaded nevertheless", "version", id, "error", err)
		o.found.versions = append(o.found.versions, id)
		return nil
	}
	if _, dead := o.d.node.o.Source.Versions(ctx, o.d.name); dead != nil {
		return err
	}
	o.leaveUnknown(name, o.failLook(name, err.Error()))
	return nil
}

// failLook takes note of a look that has failed. The next one is due after a pause that grows.
func (o *observer) failLook(name, failure string) look {
	l := o.last.looks[name]
	l.failures++
	l.failure, l.retry = failure, time.Now().Add(backoff(l.failures, maxBackoff))
	return l
}

// leaveUnknown has a version looked at again whose last look has failed. A look that
// fails may take long, so the looks at other versions do not bring the next one forward.
func (o *observer) leaveUnknown(name string, l look) {
	o.found.unknown = append(o.found.unknown, o.id(name))
	if o.found.unfinished == "" {
		o.found.unfinished = fmt.Sprintf("%s: it cannot be looked at: %s", name, l.failure)
	}
	o.found.leftOut[name] = fmt.Sprintf("version %s of %s cannot be looked at; it is loaded when it can: %s", name, o.d.name, l.failure)
	o.lookAfterFailure(name, l)
}

// lookAfterFailure has a version looked at again.
func (o *observer) lookAfterFailure(name string, l look) {
	o.found.looks[name] = l
	o.lookAgain(l.retry)
}

// lookAgain has the versions listed again at a time, or earlier.
func (o *observer) lookAgain(at time.Time) {
	if o.found.next.IsZero() || at.Before(o.found.next) {
		o.found.next = at
	}
}

// mayLook reports whether there is time for another look. Versions that take
// long, such as those with lost blocks, must not make the whole listing fail.
func (o *observer) mayLook(ctx context.Context) bool {
	o.looked++
	deadline, ok := ctx.Deadline()
	return o.promising < maxPromising && (!ok || o.looked == 1 || time.Until(deadline) > o.limit)
}

// missing returns why a version does not exist yet, or "" if it does.
func (o *observer) missing(ctx context.Context, name string) (reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	began := time.Now()
	l, err := o.list(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it has just been removed", nil
	case err != nil:
		return "", err
	case l.Incomplete != "":
		return l.Incomplete, nil
	}
	if reason := o.unsettled(name, &l, began); reason != "" {
		if o.failed[name] { // it is being repaired, and stays until that is over
			o.found.unknown = append(o.found.unknown, name)
		}
		return reason, nil
	}
	if len(l.LeftOut) > 0 {
		o.found.leftOut[name] = fmt.Sprintf("of version %s of %s, files or directories are left out (%s)", name, o.d.name, some(l.LeftOut))
	}
	return "", nil
}

// list looks at a version. With require_success_file = "auto", _SUCCESS is
// required if any version has it, which is remembered.
func (o *observer) list(ctx context.Context, name string) (source.Listing, error) {
	src, require := o.d.node.o.Source, o.d.node.loadOptions(o.d.name).RequireSuccess
	l, err := source.List(ctx, src, o.d.name, name, require)
	if require || !o.auto || l.Incomplete != "" || err != nil && !errors.Is(err, source.ErrLayout) {
		return l, err
	}
	if !l.Success {
		other, failed := source.FindSuccess(ctx, src, o.d.name, o.names)
		if other == "" || failed != nil {
			return l, errors.Join(err, failed)
		}
	}
	o.d.node.success.Store(o.d.name, true)
	if l.Success {
		return l, err
	}
	return source.List(ctx, src, o.d.name, name, true)
}

// unsettled returns why a version without a marker needs another look than the one
// that has just ended, or "" if it does not.
func (o *observer) unsettled(name string, l *source.Listing, began time.Time) string {
	o.promising++
	if o.settle <= 0 || l.Marked() || o.settled[o.id(name)] || o.id(name) == o.served || o.d.begunWith(o.id(name), l.Files) {
		return ""
	}
	return o.settling(name, l, began)
}

// settling returns why a version has to be looked at again, or "" if it has stayed
// the same from the end of the first look to the beginning of this one for long
// enough.
func (o *observer) settling(name string, l *source.Listing, began time.Time) string {
	first, before := o.last.looks[name]
	if !before || first.fingerprint != l.Fingerprint {
		first = look{fingerprint: l.Fingerprint, at: time.Now()}
	}
	o.found.looks[name] = first
	due := first.at.Add(o.settle)
	if !began.Before(due) {
		return ""
	}
	o.lookAgain(due)
	return fmt.Sprintf("it has no %s file, and has not stayed the same for %v yet", source.SuccessFile, o.settle)
}

// begunWith reports whether a load of a version has begun with the same files, maybe
// before a restart: the version was complete then, and has not changed.
func (d *db) begunWith(id string, files []source.File) bool {
	dir, err := d.node.o.Store.Dir(d.name, id)
	return err == nil && load.Unchanged(dir.Manifest(), files)
}

// some names the first few of many.
func some(names []string) string {
	const few = 5
	if len(names) > few {
		return strings.Join(names[:few], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
