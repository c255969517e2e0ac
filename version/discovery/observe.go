package discovery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/source"
)

// An observer inspects the versions of a db for a listing.
type observer struct {
	Finder
	Question
	names  []string // all versions
	now    time.Time
	limit  time.Duration // for one inspection
	looked int           // number of inspected versions
	good   int           // number of those that are complete and have not failed
	found  Listing
}

// observe adds a version to the listing if it is complete.
func (o *observer) observe(ctx context.Context, name string) error {
	o.keepLook(name)
	if o.isKnown(name) {
		o.add(o.Known[name])
		return nil
	}
	o.looked++
	deadline, ok := ctx.Deadline()
	if ok && o.looked > 1 && time.Until(deadline) <= o.limit { // slow versions must not make the whole listing fail
		o.found.Unknown = append(o.found.Unknown, name)
		return nil
	}
	in, reason, err := o.inspect(ctx, name)
	if err != nil {
		return o.observeFailed(ctx, in, err)
	}
	if l, looked := o.found.Looks[name]; looked {
		o.found.Looks[name] = Look{fingerprint: l.fingerprint, at: l.at, since: l.since}
	}
	if reason == "" {
		o.add(in)
		return nil
	}
	o.Log.Debug("version does not exist yet", "version", name, "reason", reason)
	if o.found.Unfinished == "" {
		o.found.Unfinished = fmt.Sprintf("%s: %s", name, reason)
	}
	return nil
}

// keepLook keeps what the last listing knows of a version, so that one that fails, and has not changed, need not settle again.
func (o *observer) keepLook(name string) {
	if l, looked := o.Last.Looks[name]; looked {
		o.found.Looks[name] = l
	}
}

// add adds a complete version to the listing.
func (o *observer) add(in content.Input) {
	o.list(in)
	if !o.States[in].Failed && !o.States[in].Held {
		o.good++
	}
}

// list adds an input to the listing, in the order of names.
func (o *observer) list(in content.Input) {
	i, found := slices.BinarySearchFunc(o.found.Inputs, in.Name, func(a content.Input, name string) int { return strings.Compare(a.Name, name) })
	if found {
		o.found.Inputs[i] = in
		return
	}
	o.found.Inputs = slices.Insert(o.found.Inputs, i, in)
}

// observeFailed handles a failed inspection. A version with a permanent error is listed, and its load reports the error. After a temporary error the
// version is inspected again soon. The whole listing fails only if the source cannot be read at all.
func (o *observer) observeFailed(ctx context.Context, in content.Input, err error) error {
	if source.Lasting(err) {
		o.Log.Debug("version cannot be inspected; its load reports why", "version", in.Name, "error", err)
		o.list(in)
		return nil
	}
	if _, dead := source.Versions(ctx, o.Source, o.DB); dead != nil {
		return err
	}
	o.found.Unknown = append(o.found.Unknown, in.Name)
	if o.found.Unfinished == "" {
		o.found.Unfinished = fmt.Sprintf("%s: it cannot be looked at: %v", in.Name, err)
	}
	o.found.LeftOut[in.Name] = fmt.Sprintf("version %s of %s cannot be looked at; it is loaded when it can: %v", in.Name, o.DB, err)
	o.lookAfterFailure(in.Name)
	return nil
}

// lookAfterFailure schedules another inspection of a version, after a growing pause.
func (o *observer) lookAfterFailure(name string) {
	l := o.Last.Looks[name]
	l.failures++
	o.found.Looks[name] = l
	o.lookAgain(time.Now().Add(sleep.Backoff(l.failures, minPause, maxPause)))
}

// lookAgain schedules another listing at a time, or earlier.
func (o *observer) lookAgain(at time.Time) {
	if o.found.Next.IsZero() || at.Before(o.found.Next) {
		o.found.Next = at
	}
}
