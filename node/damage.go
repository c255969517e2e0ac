package node

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/internal/human"
	"sequins/version"
)

// maxReturn limits the pause before damaged partitions are advertised again.
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
	l.damaged[partition] = false
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
	for p, withdrawn := range l.damaged {
		switch held := l.Replicas(p) > 0; {
		case held && !withdrawn:
			l.damaged[p] = true
			l.Withdraw(p)
		case !held && withdrawn && l.returning.due.IsZero():
			at := time.Now().Add(minBackoff + rand.N(maxReturn)) // so that of two nodes with damaged blocks one returns first
			l.returning.set(&k.db.bg, at, func() {
				for p, withdrawn := range l.damaged {
					if withdrawn && l.Replicas(p) == 0 && k.db.live[l.in()] == l {
						l.damaged[p] = false
						l.Advertise(p)
					}
				}
			})
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
	missing := l.Missing(l.v.Held(), 1)
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
