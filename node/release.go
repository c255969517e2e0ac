package node

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/store"
)

// releaseSurplus releases partitions that other nodes have taken over. It withdraws them immediately.
// Nodes that have not seen the new replicas yet, because they are behind or have lost ZooKeeper, still
// ask this node, so the blocks stay readable for as long as a replaced version, and are deleted then.
// Partitions that are needed here again are advertised again.
func (d *db) releaseSurplus(in content.Input) {
	l := d.live[in]
	if l == nil || d.loads[in] != nil {
		return
	}
	now, surplus := time.Now(), l.Surplus(l.v.Held())
	for p := range l.released {
		if !slices.Contains(surplus, p) {
			delete(l.released, p)
			if l.open[p] {
				l.Advertise(p)
			}
		}
	}
	var fresh []int
	for _, p := range surplus {
		if l.released[p].IsZero() {
			l.released[p] = now
			fresh = append(fresh, p)
		}
	}
	if len(fresh) > 0 {
		l.Withdraw(fresh...)
		d.log.Info("partitions given up: other nodes have taken them over", "version", in.Name, "partitions", fresh,
			"readable_for", d.linger())
	}
	d.dropReleased(l, now)
}

// dropReleased deletes the blocks of partitions whose time is over, and sets a timer for the next ones.
func (d *db) dropReleased(l *live, now time.Time) {
	next := time.Duration(-1)
	for _, p := range slices.Sorted(maps.Keys(l.released)) {
		if left := l.released[p].Add(d.linger()).Sub(now); left <= 0 {
			d.drop(l, p)
		} else if next < 0 || left < next {
			next = left
		}
	}
	if next < 0 || l.waiting {
		return
	}
	l.waiting = true
	d.tellAfter(next, releaseDue{l})
}

// drop deletes a block. Running reads of it continue.
func (d *db) drop(l *live, p int) {
	l.v.Drop(p)
	l.open[p], l.figures[p], l.bytes[p], l.list[p] = false, nil, 0, store.Listed{}
	delete(l.released, p)
	delete(l.damaged, p)
	dir, err := d.node.o.Store.Dir(d.name, l.in())
	if err == nil {
		err = dir.RemoveBlock(p)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log.Error("a block that is not needed any more cannot be removed", "version", l.in().Name, "partition", p, "error", err)
	}
}

// releaseDue reports that released partitions of a version may be deleted.
type releaseDue struct{ l *live }

// tell implements message.
func (r releaseDue) tell(d *db) {
	r.l.waiting = false
	if d.live[r.l.in()] == r.l {
		d.releaseSurplus(r.l.in())
	}
}
