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
	// maxPromising limits how many complete or settling versions are inspected. Incomplete and failed
	// ones do not count, so that they cannot hide good ones.
	maxPromising = 100
	// maxCandidates is how many complete versions that have not failed are listed.
	maxCandidates = 3
	// maxFailedLooks is how many inspections of a version may fail because this node has no
	// permission to read another version, which may have a marker.
	maxFailedLooks = 5
	// maxLook limits how long the inspection of one version may take.
	maxLook = 20 * time.Second
)

// A question is the state that a listing needs.
type question struct {
	current string            // older versions are not listed
	served  string            // the version served before a restart, which was complete then
	ids     map[string]string // see newest; the other fields contain ids, too
	known   map[string]bool   // complete versions, which are not inspected again
	failed  map[string]bool   // versions that failed to load
	loading map[string]bool   // known versions that are being loaded
	settled map[string]bool   // versions accepted before: they need not settle again
	// other are this node's plans of versions to compare with the source: of those that other nodes hold
	// by another plan, and of changed.
	other   map[string]store.Manifest
	changed string  // see db
	last    listing // the previous listing
	again   bool    // only repeats an unfinished listing, not requested by a refresh
}

// A look is the first of consecutive inspections of a version without a marker that found the same
// files, and the number of failed inspections since the last successful one.
type look struct {
	fingerprint [sha256.Size]byte
	at          time.Time // when the inspection ended
	failures    int
	failure     string    // the last error
	retry       time.Time // when to retry after that
}

// A listing is the result of listing the versions in the source. It is immutable.
type listing struct {
	versions   []string // complete versions, ascending; no more than needed
	unknown    []string // versions whose inspection failed
	changed    []string // versions whose files differ from this node's plan, which is in compared
	compared   map[string]store.Manifest
	wrong      map[string]string // what is wrong with versions that other nodes hold by another plan
	unfinished string            // why the newest incomplete version is incomplete
	leftOut    map[string]string // by version: a message about ignored files
	looks      map[string]look   // of versions that will be inspected again
	next       time.Time         // when to list again; zero: at the next refresh
	again      bool              // see question
	err        error
}

func known(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// startListing lists the versions in the background. If a listing is running, another one follows,
// because the running one may have begun too early.
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

// question returns the state that a listing needs. A version that was opened from disk counts as
// complete only after a listing contained it.
func (d *db) question() question {
	s := d.state
	q := question{current: s.Current, served: s.Served, known: make(map[string]bool), loading: make(map[string]bool), settled: make(map[string]bool),
		failed: make(map[string]bool), other: make(map[string]store.Manifest), ids: d.newest(), changed: d.changed, last: d.last}
	for _, v := range s.Entries {
		q.failed[v.Name] = v.Reason != ""
		if v.Name != s.Served && !slices.Contains(s.Listed, v.Name) {
			continue
		}
		q.known[v.Name] = v.Status == version.Building || v.Status == version.Prepared || v.Status == version.Active
		q.loading[v.Name] = q.known[v.Name] && v.Work == version.Loading && v.Reason == ""
		q.settled[v.Name] = v.Reason == "" // a failed version may have been accepted while its job paused
	}
	for _, id := range q.ids {
		if l := d.live[id]; l != nil && (id == d.changed || len(d.node.o.Cluster.OtherPlans(d.name, id)) > 0) {
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

// tell implements message. Failed versions are retried at a refresh, but not when a listing is only
// repeated for an unsettled version.
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
		d.reportWrong(before, l)
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

// countFailure counts consecutive failures of listings. A source that cannot be listed at all does not
// count against the db.
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

// after returns the names greater than current. names is ascending.
func after(names []string, current string) []string {
	i, found := slices.BinarySearch(names, current)
	if found {
		i++
	}
	return names[i:]
}

// take stores the result of a listing, and schedules another one if a version needs it.
func (d *db) take(l listing) {
	if l.err != nil {
		return
	}
	d.unfinished, d.last = l.unfinished, l
	if l.next.IsZero() || d.relooking() && !l.next.Before(d.relookAt) {
		return
	}
	if d.relooking() {
		d.cancelRelook() // the new one is earlier
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
	if !d.state.Gone {
		d.startListing(true)
	}
}

// list lists the newest versions that are newer than current. The timeout includes the wait for a slot,
// which limits how long all databases together wait for a hanging source.
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

// existing returns the newest complete versions: a few that have not failed, so that there is an
// alternative if the newest cannot be loaded, all that are newer than those, and those that are being loaded.
func (d *db) existing(ctx context.Context, q question) listing {
	names, err := d.node.o.Source.Versions(ctx, d.name)
	if err != nil {
		return listing{err: err}
	}
	r := d.node.reloadable.Load()
	o := observer{d: d, question: q, names: names, now: time.Now(), settle: r.Settle, auto: r.AutoSuccess(d.name), limit: maxLook,
		found: listing{looks: map[string]look{}, leftOut: map[string]string{}, wrong: map[string]string{}, compared: q.other}}
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
		if o.good >= maxCandidates && q.id(name) != q.served && !q.loading[q.id(name)] {
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

// An observer inspects the versions of a db for a listing.
type observer struct {
	question
	d      *db
	names  []string // all versions
	now    time.Time
	settle time.Duration
	auto   bool          // one version with _SUCCESS makes it required for all
	limit  time.Duration // for one inspection
	looked int           // number of inspected versions
	// promising counts inspected versions that may be good, good those that are complete and have not
	// failed.
	promising, good int
	found           listing
}

// observe adds a version to the listing if it is complete.
func (o *observer) observe(ctx context.Context, name string) error {
	l, looked := o.last.looks[name]
	if looked {
		o.found.looks[name] = l // so that a failed version that has not changed need not settle again
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

// observeFailed handles a failed inspection. A version with a permanent error is listed, and its load
// reports the error. After a temporary error the version is inspected again soon. The whole listing
// fails only if the source cannot be read at all.
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

// failLook returns the look after a failed inspection. The next one is due after a growing pause.
func (o *observer) failLook(name, failure string) look {
	l := o.last.looks[name]
	l.failures++
	l.failure, l.retry = failure, time.Now().Add(backoff(l.failures, maxBackoff))
	return l
}

// leaveUnknown schedules another inspection of a version whose last one failed. Inspections of other
// versions do not make it earlier, because one that fails may take long.
func (o *observer) leaveUnknown(name string, l look) {
	o.found.unknown = append(o.found.unknown, o.id(name))
	if o.found.unfinished == "" {
		o.found.unfinished = fmt.Sprintf("%s: it cannot be looked at: %s", name, l.failure)
	}
	o.found.leftOut[name] = fmt.Sprintf("version %s of %s cannot be looked at; it is loaded when it can: %s", name, o.d.name, l.failure)
	o.lookAfterFailure(name, l)
}

// lookAfterFailure schedules another inspection of a version.
func (o *observer) lookAfterFailure(name string, l look) {
	o.found.looks[name] = l
	o.lookAgain(l.retry)
}

// lookAgain schedules another listing at a time, or earlier.
func (o *observer) lookAgain(at time.Time) {
	if o.found.next.IsZero() || at.Before(o.found.next) {
		o.found.next = at
	}
}

// mayLook reports whether there is time for another inspection. Slow versions, such as those with lost
// blocks, must not make the whole listing fail.
func (o *observer) mayLook(ctx context.Context) bool {
	o.looked++
	deadline, ok := ctx.Deadline()
	return o.promising < maxPromising && (!ok || o.looked == 1 || time.Until(deadline) > o.limit)
}

// missing returns the reason why a version is incomplete, or "" if it is complete.
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
		if id := o.id(name); o.failed[id] { // it is being written again: keep it until that is done
			o.found.unknown = append(o.found.unknown, id)
		}
		return reason, nil
	}
	if len(l.LeftOut) > 0 {
		o.found.leftOut[name] = fmt.Sprintf("of version %s of %s, files or directories are left out (%s)", name, o.d.name, some(l.LeftOut))
	}
	return "", nil
}

// list inspects a version. With require_success_file = "auto", _SUCCESS is required if any version has
// it. That is remembered when the version is deleted: jobs delete the last version before they write the next.
// A version that is or was served was complete, by the rules that held then.
func (o *observer) list(ctx context.Context, name string) (source.Listing, error) {
	src, require := o.d.node.o.Source, o.d.node.loadOptions(o.d.name).RequireSuccess
	if id := o.id(name); id == o.served || id == o.current {
		return source.List(ctx, src, o.d.name, name, false)
	}
	l, err := source.List(ctx, src, o.d.name, name, require)
	if require || !o.auto || l.Incomplete != "" || err != nil && !errors.Is(err, source.ErrLayout) {
		return l, err
	}
	if !l.Success {
		other, failed := source.FindSuccess(ctx, src, o.d.name, o.names)
		if errors.Is(failed, fs.ErrPermission) && o.last.looks[name].failures >= maxFailedLooks {
			o.d.log.Warn("it is not known whether another version has a marker; this one is taken without", "version", name, "error", failed)
			failed = nil
		}
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

// unsettled returns the reason why a version without a marker needs another inspection, or "" if it
// does not.
func (o *observer) unsettled(name string, l *source.Listing, began time.Time) string {
	o.promising++
	if l.Marked() || o.settled[o.id(name)] || o.id(name) == o.served || o.d.begunWith(o.id(name), l.Files) {
		return ""
	}
	return o.settling(name, l, began)
}

// settling returns the reason why a version needs another inspection, or "" if it was the same from the
// end of the first inspection until the beginning of this one, for at least the settle time.
func (o *observer) settling(name string, l *source.Listing, began time.Time) string {
	if o.settle <= 0 {
		return ""
	}
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

// begunWith reports whether a load of a version has begun with the same files, maybe before a restart.
// The version was complete then, and has not changed.
func (d *db) begunWith(id string, files []source.File) bool {
	dir, err := d.node.o.Store.Dir(d.name, id)
	return err == nil && load.Unchanged(dir.Manifest(), files)
}

// some returns the first few names, as text.
func some(names []string) string {
	const few = 5
	if len(names) > few {
		return strings.Join(names[:few], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
