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

// What is served can differ from its files in the source: no rule can tell for certain that all files are there, and people
// change files. So the version that is served is compared with the source after the switch, and versions that other nodes hold
// by another plan are, too. If files have been added or replaced, the version is loaded again when it is complete by the rules
// for new versions.

// aloneAfter is how long a node waits for another node with its plan before it reports that there is
// none: the others may be loading the version again.
const aloneAfter = time.Minute

// compare inspects the versions in Plans, and records those whose files
// differ from this node's plan.
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

// compareWith inspects one version.
func (o *observer) compareWith(ctx context.Context, id string, plan store.Manifest) {
	name := version.Name(id)
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	began := time.Now()
	l, err := o.list(ctx, name)
	now := load.Differing(plan, l.Files)
	if err == nil && now.Grown() {
		l, err = o.listNew(ctx, name)
		now = load.Differing(plan, l.Files)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.Log.Debug("version cannot be compared with its plan: it is not in the source any more", "version", id)
	case err != nil:
		o.found.LeftOut[uncompared] = fmt.Sprintf("version %s of %s cannot be compared with its files in the source: %v", name, o.DB, err)
		o.lookAfterFailure(name, o.failLook(name, err.Error()))
	case now.None() && id == o.Changed:
		o.found.Same = id
	case now.None():
		o.noteAlone(id, plan.Partitions)
	case !now.Grown(): // the blocks have more than the source
		o.noteWrong(id, deletedFiles(o.DB, id))
	default:
		o.found.Differs[id] = fmt.Sprintf("version %s of %s was loaded from other files than the source has now (%v); it is loaded again when its files stay the same",
			name, o.DB, now)
		if l.Incomplete != "" {
			o.lookAfterFailure(name, o.failLook(name, l.Incomplete))
		} else if l.Settled(o.Settle) || o.settling(name, &l, began) == "" {
			o.found.Changed = append(o.found.Changed, id)
		}
	}
}

// noteAlone records a version that other nodes hold by other plans if none holds it by this node's plan.
func (o *observer) noteAlone(id string, partitions int) {
	if o.Apart[id] && !o.Shared(id, partitions) {
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
