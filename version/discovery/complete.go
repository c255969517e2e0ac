package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/internal/human"
	"sequins/load"
	"sequins/source"
	"sequins/store"
)

// inspect returns the input of a version, and why it is incomplete; "" if it is complete. With a lasting error the input is that of the files
// that were listed.
func (o *observer) inspect(ctx context.Context, name string) (in content.Input, reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	began := time.Now()
	l, in, err := o.listing(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return in, "it has just been removed", nil
	case err != nil:
		return in, "", err
	case l.Incomplete != "":
		first := o.firstLook(name, &l)
		if o.found.Unfinished == "" && len(l.Files) > 0 && o.now.Sub(first.at) > unfinishedAfter {
			o.found.LeftOut[name] = fmt.Sprintf("version %s of %s is not loaded, and its files have not changed for more than %v: %s",
				name, o.DB, unfinishedAfter, l.Incomplete)
		}
		return in, l.Incomplete, nil
	}
	if reason := o.unsettled(in, &l, began); reason != "" {
		if o.States[o.Known[name]].Failed { // it is being written again: keep it until that is done
			o.found.Unknown = append(o.found.Unknown, name)
		}
		return in, reason, nil
	}
	if len(l.LeftOut) > 0 {
		o.found.LeftOut[name] = fmt.Sprintf("of version %s of %s, files or directories are left out (%s)", name, o.DB, human.Some(l.LeftOut))
	}
	return in, "", nil
}

// listing lists a version, and returns its input. A version that is or was served was complete, by the rules that held then.
func (o *observer) listing(ctx context.Context, name string) (l source.Listing, in content.Input, err error) {
	if name == o.Served.Name {
		l, err = source.List(ctx, o.Source, o.DB, name, false)
		if in = o.input(name, l); err != nil || in == o.Served {
			return l, in, err
		}
	}
	l, err = o.listNew(ctx, name)
	return l, o.input(name, l), err
}

// input returns the input of a version with a listing. Files that are a part of those of a content that is served are of that content: the others have
// been deleted, or the listing is not whole.
func (o *observer) input(name string, l source.Listing) content.Input {
	in := o.Input(name, l)
	if l.Incomplete != "" || slices.ContainsFunc(o.Manifests[name], func(m store.Manifest) bool { return m.Content().Input == in }) {
		return in
	}
	for _, m := range o.Manifests[name] {
		if load.Differing(m, l.Files).Subset() {
			return m.Content().Input
		}
	}
	return in
}

// unfinishedAfter is how long the files of an incomplete version must have been the same to be reported: its job has probably ended.
const unfinishedAfter = 30 * time.Minute

// knowMarker looks whether the version that is or was served has _SUCCESS, so that with Auto the others need it, too. Its
// marker may have come after it was taken, so each refresh looks again until there is one.
func (o *observer) knowMarker(ctx context.Context) {
	name := o.Served.Name
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

// listNew lists a version that is to be loaded. With require_success_file = "auto", _SUCCESS is required if any version has
// it. That is remembered when the version is deleted: jobs delete the last version before they write the next.
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

// firstLook returns the first of the consecutive inspections of a version that have found the files of l.
func (o *observer) firstLook(name string, l *source.Listing) Look {
	first, before := o.Last.Looks[name]
	if !before || first.fingerprint != l.Fingerprint {
		first = Look{fingerprint: l.Fingerprint, at: time.Now(), since: cmp.Or(first.since, time.Now())}
	}
	o.found.Looks[name] = first
	return first
}

// unsettled returns the reason why a version needs another inspection, or "" if it does not: its listing shows that, it was complete before, or it was
// the same from the end of the first inspection until the beginning of this one, for at least the settle time.
func (o *observer) unsettled(in content.Input, l *source.Listing, began time.Time) string {
	if o.Settle <= 0 || l.Settled(o.Settle) || o.States[in].Settled || in == o.Served || o.Begun(in) {
		return ""
	}
	name := in.Name
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
