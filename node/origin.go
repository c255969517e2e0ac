package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"sequins/version"
)

// Versions are known by their names, so those that were loaded from one source must not be taken for those of another: somebody may
// have changed source in the configuration, such as from a staging area to production, and the names be days. The store has the
// source that each db is from, and the versions that are from another one. Of these only the version that was served before the
// restart is served: the db compares it with the source, and says so until it is the same, or has been loaded again, or has been
// replaced by a newer one. The others are loaded again when they are needed, which keeps their blocks if the files are the same, and
// are not kept for a rollback.

// readOrigin finds out which versions on disk are from another source. Of a store without that record, which former releases did not
// make, what was served is taken to be of this source, and otherwise no version.
func (d *db) readOrigin(local []string, served bool) {
	here := d.node.o.SourceID
	was, except, err := d.node.o.Store.Origin(d.name)
	if err != nil {
		d.log.Error("it is not known which source the versions on disk are from; they are compared with this one", "error", err)
		was = "a source that is not known"
	}
	d.foreign, d.reloading = make(map[string]bool), make(map[string]bool)
	d.originKept = was == here && err == nil
	switch {
	case d.originKept:
		d.origin, d.otherwise = "another source", except
		for _, id := range except {
			if slices.Contains(local, id) {
				d.foreign[id] = true
			}
		}
	case len(local) == 0:
	case was == "" && served:
		d.keepOrigin("")
	default:
		d.origin = cmp.Or(was, "a source that is not known")
		for _, id := range local {
			d.foreign[id] = true
		}
		d.log.Warn("the versions on disk are from another source, and are compared with this one", "from", d.origin, "source", here)
	}
}

// isMarked reports whether versions of the db had a marker before the restart. What another source had is forgotten. If it is not known, a
// marker is required: a version without one is not taken for complete.
func (d *db) isMarked() bool {
	if d.originKept || d.origin == "" {
		marked, err := d.node.o.Store.Marked(d.name)
		return marked || err != nil
	}
	if err := d.node.o.Store.ForgetMarked(d.name); err != nil {
		d.log.Error("versions without a marker are not loaded, as those of the former source had one", "error", err)
		return true
	}
	return false
}

// serveOrigin follows the source of the served version when that changes.
func (d *db) serveOrigin(id string) {
	if d.foreign[id] {
		d.changed = id
		return
	}
	d.keepOrigin(id)
}

// loadOrigin follows the source of a version of which a load has a plan, before there is any block by it: the store must have this
// source, and which versions are from another one, before it has anything of this source. A version of which there were blocks of
// another source is one of these until it is served.
func (d *db) loadOrigin(id string) error {
	if id == d.state.Current || id == d.state.Served {
		return nil // more of what is served, by its old plan
	}
	if d.foreign[id] {
		delete(d.foreign, id)
		d.reloading[id] = true
	}
	return d.recordOrigin()
}

// keepOrigin records that a version, which is served, is of this source.
func (d *db) keepOrigin(id string) {
	d.forgetOrigin(id)
	if err := d.recordOrigin(); err != nil {
		d.log.Error("the source cannot be recorded in the local store; a restart compares the versions on disk with it", "error", err)
	}
}

// recordOrigin records this source, and which versions on the disk are, or may be, from another one, unless the store has that.
func (d *db) recordOrigin() error {
	others := slices.Concat(d.strangers(), slices.Collect(maps.Keys(d.reloading)))
	slices.Sort(others)
	if d.originKept && slices.Equal(others, d.otherwise) {
		return nil
	}
	err := d.node.o.Store.SetOrigin(d.name, d.node.o.SourceID, others)
	if err == nil {
		d.otherwise, d.originKept = others, true
	}
	return err
}

// strangers returns the versions that are from another source, in ascending order.
func (d *db) strangers() []string { return slices.Sorted(maps.Keys(d.foreign)) }

// forgetOrigin forgets that a version is or was from another source: it is of this one, or not on the disk any more.
func (d *db) forgetOrigin(id string) {
	delete(d.foreign, id)
	delete(d.reloading, id)
}

// fromElsewhere describes a served version of another source; "" if it is of this one.
func (d *db) fromElsewhere(id string) string {
	if !d.foreign[id] || id != d.state.Current {
		return ""
	}
	return fmt.Sprintf("version %s of %s was loaded from %s, and not from %s; it is served until the source has a version of that name, with which it is compared, or a newer one",
		version.Name(id), d.name, d.origin, d.node.o.SourceID)
}
