package fill

import (
	"slices"
	"time"
)

// patienceFactor is how many times longer than this node's own load that of another one may take until its next block.
const patienceFactor = 3

// maxFailures is how often a copy may fail for reasons that may pass before the node is not asked for the block again.
const maxFailures = 3

// A peer is what is known of another node.
type peer struct {
	loading bool // it reports that it loads
	blocks  int  // the most that it has reported
	passed  bool // as a reader it is not waited for any more

	resting time.Time // until when it is not asked for blocks
	failing time.Time // since when it has given no block that it was asked for; zero: it has given one since
	stuck   bool      // that was for too long, and it is not asked any more
}

func (r *Run) peer(addr string) *peer {
	p := r.peers[addr]
	if p == nil {
		p = &peer{}
		r.peers[addr] = p
	}
	return p
}

// look reads which nodes have which partitions, and what of them other nodes will deliver. Without reports of a partition, those that
// advertise it have it: a node that has lost ZooKeeper may still give it.
func (f *filling) look() {
	if f.o.Transfer == nil {
		f.left = len(f.todo)
		return
	}
	reports, _ := f.o.Following.Reports()
	f.heldBy = make(map[int][]string)
	for _, p := range f.peers {
		p.loading = false
	}
	for addr, r := range f.parser.Parse(reports) {
		p := f.peer(addr)
		p.loading = r.Loading
		if len(r.Blocks) > p.blocks {
			p.blocks = len(r.Blocks)
			delete(f.waits, addr) // the wait begins anew
		}
		for _, b := range r.Blocks {
			f.heldBy[b.Partition] = append(f.heldBy[b.Partition], addr)
		}
	}
	owners, _ := f.o.Following.Owners()
	f.members = make(map[string]bool)
	for _, addr := range slices.Concat(owners...) {
		f.members[addr] = true
	}
	for _, p := range f.todo {
		if len(f.heldBy[p]) == 0 {
			f.heldBy[p] = f.o.Following.Peers(p)
		}
	}
	if f.loaded {
		f.passOver()
	}
	f.left = 0
	for _, p := range f.todo {
		if !f.isExpected(p) {
			f.left++
		}
	}
}

// givers returns the nodes that have a partition and may be asked for it.
func (f *filling) givers(partition int) (addrs []string) {
	for _, addr := range f.heldBy[partition] {
		if !f.peer(addr).stuck && f.failures[spot{addr, partition}] < maxFailures {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// isExpected reports whether another node gives a partition, or is to be waited for until it does.
func (f *filling) isExpected(partition int) bool {
	return len(f.givers(partition)) > 0 || f.job.Load != nil && f.reader(partition) != f.self
}

// reader returns the node that is to read a partition from the source: the first of its order that has not been passed over, or this one.
func (f *filling) reader(partition int) string {
	if partition < len(f.order) {
		for _, addr := range f.order[partition] {
			if addr == f.self || f.members[addr] && !f.peer(addr).passed && f.failures[spot{addr, partition}] < maxFailures {
				return addr
			}
		}
	}
	return f.self
}

// passOver begins or goes on to wait for the readers of partitions that no node has, and passes over those that have been waited for for too long.
func (f *filling) passOver() {
	waits, now := make(map[string]time.Time), time.Now()
	for _, p := range f.todo {
		if len(f.givers(p)) > 0 {
			continue
		}
		for addr := f.reader(p); addr != f.self; addr = f.reader(p) {
			since, waiting := f.waits[addr]
			if !waiting {
				since = now
			}
			waits[addr] = since
			if now.Sub(since) <= f.patience(addr) {
				break
			}
			f.peer(addr).passed = true
			f.o.Logger.Info("a node is not waited for any longer; another one reads its partitions from the source", "version", f.content.Name, "peer", addr)
		}
	}
	f.waits = waits
}

// patience returns how long a reader may take until its next block.
func (f *filling) patience(addr string) time.Duration {
	switch {
	case !f.peer(addr).loading:
		return f.o.Times.Silent
	case f.took > 0:
		return max(f.o.Times.Silent, patienceFactor*f.took)
	}
	return f.o.Times.Most
}
