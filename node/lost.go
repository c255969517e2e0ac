package node

import (
	"sequins/internal/human"
)

// logLost logs which partitions of the version that is served no node holds any more, and when all are held again. Before all have been there
// once, as while nodes start, some may be missing.
func (k *keeper) logLost() {
	l := k.live[k.db.facts.Current]
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
