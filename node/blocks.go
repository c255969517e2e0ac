package node

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/internal/human"
	"sequins/version"
)

// A keeper keeps what is here of a database: the versions in its set, and their blocks.
type keeper struct {
	db        *common
	judge     *judge
	lost      string    // the partitions that logLost has logged as lost
	settled   time.Time // when other nodes have had time to advertise what they hold
	seenWhole bool      // every partition of the current version has been on some node at least once
}

// openBlocks opens newly published blocks and reports whether there were any. It ignores blocks of
// another division, which the load by the new division removes.
func (k *keeper) openBlocks(l *live) (opened bool) {
	l.unopened = nil
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
	for i, r := range dir.OpenAll(partitions) {
		p := partitions[i]
		if r.Err == nil {
			r.Err = l.put(p, r.Block)
		}
		if r.Err != nil {
			log := k.db.log.With("version", name, "partition", p)
			log.Error("a block cannot be opened", "error", r.Err)
			if !blocks.IsDamage(r.Err) {
				l.unopened = r.Err
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

// keepManifest stores the manifest of a content that only other nodes hold, so that it can be served after a restart, even without the source.
func (k *keeper) keepManifest(l *live) {
	_, err := k.db.node.o.Store.Dir(k.db.name, l.in())
	if errors.Is(err, fs.ErrNotExist) {
		_, err = k.db.node.o.Store.Create(k.db.name, l.manifest)
	}
	if err != nil {
		k.db.log.Error("the manifest of a version cannot be stored; a restart needs the source or another node for it", "version", l.in().Name, "error", err)
	}
}

// drop deletes a block. Running reads of it continue.
func (k *keeper) drop(l *live, p int) {
	l.v.Drop(p)
	l.open[p] = false
	delete(l.figures, p)
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

// maxReturn limits the pause before a damaged partition is advertised again.
const maxReturn = 5 * time.Second

// damaged has a damaged block loaded again: at once the first time, otherwise after a retry, so that a faulty disk does not cause constant reads
// from the source. A version that is being removed is loaded again only if it is needed after all, and one that is kept before a rollback to it.
func (k *keeper) damaged(in content.Input, partition int) {
	v, _ := k.db.facts.Entry(in)
	if k.db.live[in] == nil || v.Removal > version.Lingering {
		return
	}
	l := k.db.live[in]
	dir, err := k.db.node.o.Store.Dir(k.db.name, in)
	if err == nil {
		err = dir.SetAside(partition)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the next load finds it again, and ends with the partition missing
		k.db.log.Error("a damaged block cannot be set aside", "version", in.Name, "partition", partition, "error", err)
	} else {
		l.open[partition] = false
	}
	l.v.SetDamaged(partition)
	l.damaged[partition] = time.Time{}
	switch r := k.db.records[in]; {
	case v.Removal != version.Staying:
	case slices.Contains(r.reloaded, partition):
		k.db.facts.Fail(in, version.Failure{Reason: fmt.Sprintf("the block of partition %d was damaged again after it had been loaded again", partition)})
	default:
		r.reloaded = append(r.reloaded, partition)
	}
}

// withdrawDamaged withdraws partitions whose block is damaged, so that a damaged block does not count as a replica and other nodes do not give up
// good ones for it. A partition that no other node holds is advertised: what can still be read of it, others can only read here.
func (k *keeper) withdrawDamaged(l *live) {
	for p, back := range l.damaged {
		switch held := l.Replicas(p) > 0; {
		case held && back.IsZero():
			l.damaged[p] = time.Now().Add(minBackoff + rand.N(maxReturn)) // so that of two nodes with damaged blocks one returns first
			l.Withdraw(p)
		case !held && k.db.bg.isDue(back):
			l.damaged[p] = time.Time{}
			l.Advertise(p)
		}
	}
}

// logLost logs which partitions of the version that is served no node holds any more, and when all are held again. Before all have been there
// once, as while nodes start, some may be missing.
func (k *keeper) logLost() {
	l := k.db.live[k.db.facts.Current]
	if l == nil || !k.seenWhole {
		return
	}
	missing := version.Missing(l, l.v.Held(), 1)
	before := k.lost
	if k.lost = human.Ranges(missing); k.lost == before {
		return
	}
	log := k.db.log.With("version", l.in().Name)
	if len(missing) == 0 {
		log.Info("all partitions are on some node again")
		return
	}
	log.Error("partitions are on no node that is known: requests for their keys fail, unless the nodes that held them last still answer",
		"partitions", k.lost, "count", len(missing))
}
