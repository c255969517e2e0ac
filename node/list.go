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

	"sequins/source"
	"sequins/version"
)

const (
	// maxLooked is how many versions are looked at in search of some that exist.
	maxLooked = 100
	// maxCandidates is how many versions that have not failed are listed.
	maxCandidates = 3
	// maxLook bounds how long it may take to look at one version.
	maxLook = 20 * time.Second
)

// A question is what a listing has to know.
type question struct {
	current string          // older versions are of no interest
	known   map[string]bool // versions that exist: they are not looked at
	failed  map[string]bool // versions that could not be loaded
	settled map[string]bool // versions that have been taken before: one look is enough
	last    listing         // the last one
	again   bool            // only versions without a marker are the reason
}

// A look is the first of a row of looks at a version that have found the same.
type look struct {
	fingerprint [sha256.Size]byte
	at          time.Time
}

// A listing is what was found out about the versions in the source. It is never
// changed, only replaced.
type listing struct {
	versions   []string          // those that exist, ascending; no more than are needed
	unfinished string            // why the newest that does not exist yet does not
	leftOut    map[string]string // a sentence for each version of which something is left out
	looks      map[string]look   // at versions without a marker
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
	q := question{current: d.state.Current, known: make(map[string]bool), settled: make(map[string]bool), failed: make(map[string]bool), last: d.last, again: again}
	for _, v := range d.state.Entries {
		q.failed[v.Name] = v.Reason != ""
		q.known[v.Name] = v.Status == version.Building || v.Status == version.Prepared || v.Status == version.Active
		q.settled[v.Name] = v.Reason == "" // what failed may have been taken while its job paused
	}
	timeout := listTimeout
	if d.state.Looking {
		timeout = startTimeout
	}
	d.work(func() message { return d.list(timeout, q) })
}

// tell implements message. What has failed is tried again at a refresh, and not
// whenever a version without a marker is looked at again.
func (l listing) tell(d *db) {
	d.listing = false
	first := d.state.Looking
	same := slices.Equal(after(l.versions, d.state.Current), after(d.last.versions, d.state.Current))
	d.take(l)
	switch {
	case l.err == nil && (first || !l.again || !same):
		d.handle(version.Listed{Versions: l.versions, Relook: l.again && !first})
	case l.err != nil && first:
		d.handle(version.Unlisted{})
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
// when one without a marker needs another look.
func (d *db) take(l listing) {
	if l.err != nil {
		return
	}
	d.unfinished, d.last = l.unfinished, l
	if l.next.IsZero() || d.relooking {
		return
	}
	d.relooking = true
	d.relooks++
	d.work(func() message {
		d.pause(time.Until(l.next))
		return relook{}
	})
}

// A relook is due at versions without a marker.
type relook struct{}

// tell implements message.
func (relook) tell(d *db) {
	d.relooking = false
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
		found: listing{looks: map[string]look{}, leftOut: map[string]string{}}}
	if deadline, ok := ctx.Deadline(); ok {
		o.limit = min(o.limit, time.Until(deadline)/3)
	}
	for name, s := range q.last.leftOut {
		if q.known[name] {
			o.found.leftOut[name] = s
		}
	}
	for _, name := range slices.Backward(names) {
		if o.good == maxCandidates || name <= q.current {
			break
		}
		if err := o.observe(ctx, name); err != nil {
			return listing{err: err}
		}
	}
	slices.Reverse(o.found.versions)
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
	good   int           // versions that exist and have not failed
	found  listing
}

// observe adds a version to the listing if it exists, or if it cannot be looked at, which is the version's own
// fault, unless the source cannot be read at all: loading it will report what is wrong.
func (o *observer) observe(ctx context.Context, name string) error {
	if l, looked := o.last.looks[name]; looked {
		o.found.looks[name] = l // so that a version that fails and has not changed need not settle again
	}
	if !o.failed[name] && o.known[name] {
		o.good++
		o.found.versions = append(o.found.versions, name)
		return nil
	}
	if !o.mayLook(ctx) {
		return nil
	}
	reason, err := o.missing(ctx, name)
	if err != nil {
		if _, dead := o.d.node.o.Source.Versions(ctx, o.d.name); dead != nil {
			return err
		}
		o.d.log.Warn("version cannot be looked at", "version", name, "error", err)
		o.found.versions = append(o.found.versions, name)
		return nil
	}
	if reason == "" {
		o.found.versions = append(o.found.versions, name)
		if !o.failed[name] {
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

// mayLook reports whether there is time for another look. Versions that take
// long, such as those with lost blocks, must not make the whole listing fail.
func (o *observer) mayLook(ctx context.Context) bool {
	o.looked++
	deadline, ok := ctx.Deadline()
	return o.looked <= maxLooked && (!ok || o.looked == 1 || time.Until(deadline) > o.limit)
}

// missing returns why a version does not exist yet, or "" if it does.
func (o *observer) missing(ctx context.Context, name string) (reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	l, err := o.list(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it has just been removed", nil
	case err != nil:
		return "", err
	case l.Incomplete != "":
		return l.Incomplete, nil
	}
	if reason := o.unsettled(name, &l); reason != "" {
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

// unsettled returns why a version without a marker needs another look, or "" if
// it does not.
func (o *observer) unsettled(name string, l *source.Listing) string {
	if o.settle <= 0 || l.Marked() || o.settled[name] {
		return ""
	}
	first, before := o.last.looks[name]
	if !before || first.fingerprint != l.Fingerprint {
		first = look{l.Fingerprint, o.now}
	}
	o.found.looks[name] = first
	due := first.at.Add(o.settle)
	if !o.now.Before(due) {
		return ""
	}
	if o.found.next.IsZero() || due.Before(o.found.next) {
		o.found.next = due
	}
	return fmt.Sprintf("it has no %s file, and has not stayed the same for %v yet", source.SuccessFile, o.settle)
}

// some names the first few of many.
func some(names []string) string {
	const few = 5
	if len(names) > few {
		return strings.Join(names[:few], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
