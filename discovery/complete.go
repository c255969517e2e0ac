package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"sequins/source"
	"sequins/version"
)

// missing returns the reason why a version is incomplete, or "" if it is complete.
func (o *observer) missing(ctx context.Context, name string) (reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	began := time.Now()
	l, err := o.list(ctx, name)
	o.found.Inputs[name] = l.Input
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it has just been removed", nil
	case err != nil:
		return "", err
	case l.Incomplete != "":
		o.noteUnfinished(name, &l)
		return l.Incomplete, nil
	}
	if reason := o.unsettled(name, &l, began); reason != "" {
		if id := o.id(name); o.Failed[id] { // it is being written again: keep it until that is done
			o.found.Unknown = append(o.found.Unknown, id)
		}
		return reason, nil
	}
	if len(l.LeftOut) > 0 {
		o.found.LeftOut[name] = fmt.Sprintf("of version %s of %s, files or directories are left out (%s)", name, o.DB, some(l.LeftOut))
	}
	return "", nil
}

// unfinishedAfter is how long the files of an incomplete version must have been the same to be reported: its job has
// probably ended.
const unfinishedAfter = 30 * time.Minute

// noteUnfinished adds a message about an incomplete version whose job has probably ended, if there is no newer one.
func (o *observer) noteUnfinished(name string, l *source.Listing) {
	first := o.firstLook(name, l)
	if o.found.Unfinished == "" && len(l.Files) > 0 && o.now.Sub(first.at) > unfinishedAfter {
		o.found.LeftOut[name] = fmt.Sprintf("version %s of %s is not loaded, and its files have not changed for more than %v: %s",
			name, o.DB, unfinishedAfter, l.Incomplete)
	}
}

// knowMarker looks whether the version that is or was served has _SUCCESS, so that with Auto the others need it, too. Its
// marker may have come after it was taken, so each refresh looks again until there is one.
func (o *observer) knowMarker(ctx context.Context) {
	name := version.Name(max(o.Current, o.Served))
	if !o.Auto || o.Require || o.Again || !slices.Contains(o.names, name) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	marked, err := source.FindSuccess(ctx, o.Source, o.DB, []string{name})
	if err != nil {
		o.Log.Warn("it is not known whether the version that is served has a marker", "version", name, "error", err)
	}
	o.found.Marked = o.found.Marked || marked != ""
}

// list inspects a version. With require_success_file = "auto", _SUCCESS is required if any version has
// it. That is remembered when the version is deleted: jobs delete the last version before they write the next.
// A version that is or was served was complete, by the rules that held then.
func (o *observer) list(ctx context.Context, name string) (source.Listing, error) {
	if id := o.id(name); id == o.Served || id == o.Current {
		return source.List(ctx, o.Source, o.DB, name, false)
	}
	return o.listNew(ctx, name)
}

// listNew inspects a version that is to be loaded.
func (o *observer) listNew(ctx context.Context, name string) (source.Listing, error) {
	src, require := o.Source, o.Require || o.found.Marked
	l, err := source.List(ctx, src, o.DB, name, require)
	if require || !o.Auto || l.Incomplete != "" || err != nil && !errors.Is(err, source.ErrLayout) {
		return l, err
	}
	if !l.Success {
		other, failed := source.FindSuccess(ctx, src, o.DB, o.names)
		if errors.Is(failed, fs.ErrPermission) && o.Last.Looks[name].failures >= maxFailedLooks {
			o.Log.Warn("it is not known whether another version has a marker; this one is taken without", "version", name, "error", failed)
			failed = nil
		}
		if other == "" || failed != nil {
			return l, errors.Join(err, failed)
		}
	}
	o.found.Marked = true
	if l.Success {
		return l, err
	}
	return source.List(ctx, src, o.DB, name, true)
}

// unsettled returns the reason why a version needs another inspection, or "" if it does not.
func (o *observer) unsettled(name string, l *source.Listing, began time.Time) string {
	o.promising++
	if l.Settled(o.Settle) || o.Settled[o.id(name)] || o.id(name) == o.Served || o.Begun(o.id(name), l.Files) {
		return ""
	}
	return o.settling(name, l, began)
}

// firstLook returns the first of the consecutive inspections of a version that have found the files of l.
func (o *observer) firstLook(name string, l *source.Listing) Look {
	first, before := o.Last.Looks[name]
	if !before || first.fingerprint != l.Fingerprint {
		first = Look{fingerprint: l.Fingerprint, at: time.Now(), since: cmp.Or(first.since, time.Now())}
	}
	o.found.Looks[name] = first
	return first
}

// settling returns the reason why a version needs another inspection, or "" if it was the same from the
// end of the first inspection until the beginning of this one, for at least the settle time.
func (o *observer) settling(name string, l *source.Listing, began time.Time) string {
	if o.Settle <= 0 {
		return ""
	}
	due := o.firstLook(name, l).at.Add(o.Settle)
	if !began.Before(due) {
		return ""
	}
	o.lookAgain(due)
	if since := o.found.Looks[name].since; o.now.Sub(since) > unfinishedAfter {
		o.found.LeftOut[name] = fmt.Sprintf("version %s of %s is not loaded: its files, hidden ones too, have not stayed the same for %v since %s",
			name, o.DB, o.Settle, since.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("its files have not stayed the same for %v yet", o.Settle)
}

// some returns the first few names, as text.
func some(names []string) string {
	const few = 5
	if len(names) > few {
		return strings.Join(names[:few], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
