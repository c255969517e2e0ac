package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"sequins/source"
	"sequins/version"
)

// maxUnfinished is how many versions that do not exist yet are looked at in
// search of some that do.
const maxUnfinished = 100

// A listing is what was found out about the versions in the source.
type listing struct {
	versions   []string // those that exist, ascending; no more than are needed
	unfinished string   // why the newest that does not exist yet does not
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
func (d *db) startListing() {
	if d.listing {
		d.again = true
		return
	}
	d.listing = true
	exist := make(map[string]bool)
	for _, v := range d.state.Entries {
		exist[v.Name] = v.Status == version.Building || v.Status == version.Prepared || v.Status == version.Active
	}
	current := d.state.Current
	d.work(func() message { return d.list(listTimeout, current, exist) })
}

// tell implements message.
func (l listing) tell(d *db) {
	d.listing = false
	if l.err == nil {
		d.unfinished = l.unfinished
		d.handle(version.Listed{Versions: l.versions})
	}
	if d.again {
		d.again = false
		d.startListing()
	}
}

// list lists the newest versions that are newer than current. Those of exist
// are known to. The timeout holds from now on, not from its turn: at the start
// that bounds how long all databases together wait for a source that hangs.
func (d *db) list(timeout time.Duration, current string, exist map[string]bool) listing {
	l := listing{}
	ctx, cancel := context.WithTimeout(d.ctx, timeout)
	defer cancel()
	select {
	case d.node.listings <- struct{}{}:
		l.versions, l.unfinished, l.err = d.existing(ctx, current, exist)
		<-d.node.listings
	case <-ctx.Done():
		l.err = fmt.Errorf("waiting for other databases to be listed: %w", ctx.Err())
	}
	if l.err != nil {
		d.node.sourceFailed(ctx, d.name, l.err)
	} else {
		d.node.sourceRead(ctx, d.name)
	}
	return l
}

// existing finds the newest versions that exist: those whose jobs are done.
func (d *db) existing(ctx context.Context, current string, exist map[string]bool) (found []string, unfinished string, err error) {
	names, err := d.node.o.Source.Versions(ctx, d.name)
	if err != nil {
		return nil, "", err
	}
	looked := 0
	for _, name := range slices.Backward(names) {
		if len(found) == 3 || name <= current || looked > maxUnfinished {
			break
		}
		reason := ""
		if !exist[name] {
			if reason, err = d.missing(ctx, name); err != nil {
				return nil, "", err
			}
		}
		if reason == "" {
			found = append(found, name)
			continue
		}
		looked++
		d.log.Debug("version does not exist yet", "version", name, "reason", reason)
		if unfinished == "" {
			unfinished = fmt.Sprintf("%s: %s", name, reason)
		}
	}
	slices.Reverse(found)
	return found, unfinished, nil
}

// missing returns why a version does not exist yet, or "" if it does. One that
// may not be read exists: loading it will say what is wrong.
func (d *db) missing(ctx context.Context, name string) (reason string, err error) {
	src, require := d.node.o.Source, d.node.reloadable.Load().Load(d.name).RequireSuccess
	files, err := src.Files(ctx, d.name, name)
	complete := false
	if err == nil {
		complete, reason, err = source.CheckComplete(ctx, src, d.name, name, files, require)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it has just been removed", nil
	case errors.Is(err, fs.ErrPermission):
		return "", nil
	case err != nil || complete:
		return "", err
	case reason == "":
		return "it is not complete", nil
	}
	return reason, nil
}
