package cluster

import (
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
)

// view lists the nodes that hold partitions of a content. It is immutable.
type view struct {
	replicas [][]string // addresses that advertise each partition
	// peers are the replicas and the vanished ones: a node that has lost ZooKeeper
	// may still answer.
	peers    [][]string
	vanished map[holding]time.Time // replicas that are not advertised any more, since when
}

// holding is one partition on one node.
type holding struct {
	partition int
	addr      string
}

const (
	// missedFor is how long a node remains a peer for a partition that it no
	// longer advertises.
	missedFor = 10 * time.Minute
	// maxMissed limits the vanished peers of one partition.
	maxMissed = 8
)

// holders returns the addresses that advertise each partition of a content, and what is advertised of other contents
// only, or of an unknown one.
func holders(all []advertisement, c content.Content) (replicas [][]string, others map[holding]bool) {
	others = make(map[holding]bool)
	for _, a := range all {
		if !a.serves(c) {
			others[a.holding] = true
			continue
		}
		if missing := a.partition + 1 - len(replicas); missing > 0 {
			replicas = append(replicas, make([][]string, missing)...)
		}
		replicas[a.partition] = append(replicas[a.partition], a.addr)
	}
	return replicas, others
}

// next returns the view that follows v, from what holders has found now. A node that has vanished from replicas and is
// among others does not hold the content any more.
func (v *view) next(replicas [][]string, others map[holding]bool, now time.Time) *view {
	n := &view{replicas: replicas, peers: replicas, vanished: make(map[holding]time.Time)}
	maps.Copy(n.vanished, v.vanished)
	for p, before := range v.replicas {
		for _, addr := range before {
			n.vanished[holding{p, addr}] = now
		}
	}
	maps.DeleteFunc(n.vanished, func(h holding, since time.Time) bool {
		return now.Sub(since) >= missedFor || others[h] || slices.Contains(at(replicas, h.partition), h.addr)
	})
	if len(n.vanished) == 0 {
		return n
	}
	n.peers = make([][]string, max(len(replicas), len(v.peers)))
	for p := range n.peers {
		n.peers[p] = slices.Clip(at(replicas, p))
	}
	for h := range n.vanished {
		if len(n.peers[h.partition]) < len(at(replicas, h.partition))+maxMissed {
			n.peers[h.partition] = append(n.peers[h.partition], h.addr)
		}
	}
	return n
}

func at(table [][]string, partition int) []string {
	if uint(partition) >= uint(len(table)) {
		return nil
	}
	return table[partition]
}
