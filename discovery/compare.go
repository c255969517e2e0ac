package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"sequins/load"
	"sequins/store"
	"sequins/version"
)

// Two nodes can have different plans of a version: if it has no marker and its job paused for longer than
// settle, or if it was modified. A node that sees another plan compares its own with the source.

// aloneAfter is how long a node waits for another node with its plan before it reports that there is
// none: the others may be loading the version again.
const aloneAfter = time.Minute

// compare inspects the versions in Plans, and records those whose files
// differ from this node's plan. The files must settle first: a marker applies to the files before the
// change.
func (o *observer) compare(ctx context.Context, allowed version.Pin) {
	for id, plan := range o.Plans {
		if !allowed.Allows(id) {
			continue // its revision would be loaded before the version that the pin allows
		}
		name := version.Name(id)
		if failed := o.Last.Looks[name]; o.Again && o.now.Before(failed.retry) {
			o.lookAfterFailure(name, failed)
			continue
		}
		o.compareWith(ctx, id, plan)
	}
	slices.Sort(o.found.Changed)
}

// compareWith inspects one version. If its files differ, it is loaded again as soon as it is complete by the rules for new versions.
func (o *observer) compareWith(ctx context.Context, id string, plan store.Manifest) {
	name := version.Name(id)
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	began := time.Now()
	l, err := o.list(ctx, name)
	if err == nil && l.Incomplete == "" && !load.Unchanged(plan, l.Files) && !load.OnlyDeleted(plan, l.Files) {
		l, err = o.listNew(ctx, name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.Log.Debug("version cannot be compared with its plan: it is not in the source any more", "version", id)
	case err != nil || l.Incomplete != "":
		o.Log.Debug("version cannot be compared with its plan", "version", id, "incomplete", l.Incomplete, "error", err)
		o.lookAfterFailure(name, o.failLook(name, fmt.Sprint(l.Incomplete, err)))
	case load.Unchanged(plan, l.Files) && id == o.Changed:
		o.found.Same = id
	case load.Unchanged(plan, l.Files):
		o.noteAlone(id, plan.Partitions)
	case load.OnlyDeleted(plan, l.Files): // the blocks have more than the source
		o.noteWrong(id, deletedFiles(o.DB, id))
	case o.settling(name, &l, began) == "":
		o.found.Changed = append(o.found.Changed, id)
	}
}

// noteAlone records a version if no other node holds it by this node's plan.
func (o *observer) noteAlone(id string, partitions int) {
	if !o.Shared(id, partitions) {
		o.noteWrong(id, unshared(o.DB, id))
	}
}

// noteWrong records what is wrong with a version. It is reported if the next listing finds the same.
func (o *observer) noteWrong(id, text string) {
	o.found.Wrong[id] = text
	if o.Last.Wrong[id] != text {
		o.lookAgain(o.now.Add(aloneAfter))
	}
}

// unshared describes a version that all other nodes hold by another plan although this node's plan
// matches the source, with a remedy.
func unshared(db, id string) string {
	return fmt.Sprintf("other nodes have planned version %s of %s from other files or fields than this node, so that they do not use each other's blocks; "+
		"configure the same key, value and partitioner for it on all nodes, unless its files have been changed or deleted, and write a new version",
		version.Name(id), db)
}

// deletedFiles describes a version of which files have been deleted from the source, with a remedy.
func deletedFiles(db, id string) string {
	return fmt.Sprintf("files of version %s of %s have been deleted from the source; it is served from the blocks of all of its files, "+
		"and nodes that have no blocks of it do not see those files; write a new version", version.Name(id), db)
}
