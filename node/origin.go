package node

import (
	"fmt"

	"sequins/version"
)

// Versions are known by their names, so those that were loaded from one source must not be taken for those of another: somebody may
// have changed source in the configuration, such as from a staging area to production, and the names be days. The store has the
// source that each db is from. If that is another one, the db compares the version that it serves with the source, and says so until
// it is the same, or has been loaded again, or has been replaced by a newer one.

// readOrigin finds out whether the versions on disk are from another source.
func (d *db) readOrigin(local []string) {
	here := d.node.o.SourceName
	was, err := d.node.o.Store.Origin(d.name)
	if err != nil {
		d.log.Error("it is not known which source the versions on disk are from; they are compared with this one", "error", err)
		was = "a source that is not known"
	}
	d.originKept = was == here && err == nil
	switch {
	case len(local) == 0 || d.originKept:
	case was == "": // by a release that did not record it
		d.keepOrigin()
	default:
		d.origin, d.foreign = was, make(map[string]bool)
		for _, id := range local {
			d.foreign[id] = true
		}
		d.log.Warn("the versions on disk are from another source, and are compared with this one", "from", was, "source", here)
	}
}

// serveOrigin follows the source of the served version when that changes.
func (d *db) serveOrigin(id string) {
	if d.foreign[id] {
		d.changed = id
		return
	}
	d.keepOrigin()
}

// keepOrigin records that the served version is of this source.
func (d *db) keepOrigin() {
	if d.originKept {
		return
	}
	if err := d.node.o.Store.SetOrigin(d.name, d.node.o.SourceName); err != nil {
		d.log.Error("the source cannot be recorded in the local store; with another source, versions of the same name would not be compared", "error", err)
		return
	}
	d.origin, d.foreign, d.originKept = "", nil, true
}

// fromElsewhere describes a served version of another source; "" if it is of this one.
func (d *db) fromElsewhere(id string) string {
	if !d.foreign[id] {
		return ""
	}
	return fmt.Sprintf("version %s of %s was loaded from %s, which was the source before; it is served until %s has a version of that name, with which it is compared, or a newer one",
		version.Name(id), d.name, d.origin, d.node.o.SourceName)
}
