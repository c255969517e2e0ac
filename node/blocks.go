package node

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"sequins/blocks"
	"sequins/store"
)

// A keeper keeps what is here of a database: the versions in its set, and their blocks.
type keeper struct {
	db    *common
	judge *judge
	lost  string // the partitions that logLost has logged as lost
	// followBy is the deadline of the current decision for the first lookups of replicas.
	followBy  time.Time
	seenWhole bool // every partition of the current version has been on some node at least once
}

// openBlocks opens newly published blocks and reports whether there were any. It ignores blocks of
// another division, which the load by the new division removes.
func (k *keeper) openBlocks(l *live) (opened bool) {
	name := l.in().Name
	dir, err := k.db.node.o.Store.Dir(k.db.name, l.in())
	if err != nil || dir.Manifest().Content() != l.content() {
		return false
	}
	partitions, err := dir.Complete()
	if err != nil {
		k.db.log.Error("the blocks of a version cannot be listed", "version", name, "error", err)
		return false
	}
	partitions = slices.DeleteFunc(partitions, func(p int) bool { return l.open[p] })
	if len(partitions) == 0 {
		return false
	}
	list := dir.List()
	for i, r := range dir.OpenAll(partitions, list) {
		p := partitions[i]
		if r.Err == nil {
			r.Err = l.put(p, r.Block, list[p])
		}
		if r.Err != nil {
			log := k.db.log.With("version", name, "partition", p)
			log.Error("a block cannot be opened", "error", r.Err)
			if !blocks.IsDamage(r.Err) {
				continue
			}
			k.db.node.o.Metrics.Server.ChecksumFailure(k.db.name)
			if err := dir.SetAside(p); err != nil { // so that it is loaded again
				log.Error("a damaged block cannot be set aside", "error", err)
			}
			continue
		}
		opened = true
		if k.db.live[l.in()] == l {
			l.Advertise(p)
		}
	}
	return opened
}

// listBlocks stores what is known of the blocks of a version, so that the next start need not open the small ones, nor the next load make them again.
func (k *keeper) listBlocks(l *live) {
	if !l.unlisted {
		return
	}
	l.unlisted = false
	dir, err := k.db.node.o.Store.Dir(k.db.name, l.in())
	if err == nil {
		err = dir.SetList(l.list)
	}
	if err != nil {
		k.db.log.Warn("the next start has to open every block", "version", l.in().Name, "error", err)
	}
}

// keepManifest stores the manifest of a content that only other nodes hold, so that it can be served after a restart, even without the source.
func (k *keeper) keepManifest(l *live) {
	_, err := k.db.node.o.Store.Dir(k.db.name, l.in())
	if errors.Is(err, fs.ErrNotExist) {
		m := l.manifest
		m.Created = time.Now()
		_, err = k.db.node.o.Store.Create(k.db.name, m)
	}
	if err != nil {
		k.db.log.Error("the manifest of a version cannot be stored; a restart needs the source or another node for it", "version", l.in().Name, "error", err)
	}
}

// drop deletes a block. Running reads of it continue.
func (k *keeper) drop(l *live, p int) {
	l.v.Drop(p)
	l.open[p], l.figures[p], l.bytes[p], l.list[p] = false, nil, 0, store.Listed{}
	delete(l.released, p)
	delete(l.damaged, p)
	dir, err := k.db.node.o.Store.Dir(k.db.name, l.in())
	if err == nil {
		err = dir.RemoveBlock(p)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.db.log.Error("a block that is not needed any more cannot be removed", "version", l.in().Name, "partition", p, "error", err)
	}
}
