package shard

import (
	"cmp"
	"slices"
)

// rebalance turns the held replicas into a division with as few new replicas as
// possible: shards over their quota release replicas to those under it,
// partitions with too many replicas, or too many in one zone, lose some, and
// those with too few gain some. What direct moves cannot achieve is done by
// chains of moves.
//
// All orders are independent of what is held, so that the result stays the same
// while it is applied: adding a replica that is in the result, or removing one
// that is not, does not change the order of the others.
func (d *division) rebalance() {
	d.was = make([][]int32, len(d.on))
	for p, on := range d.on {
		d.was[p] = slices.Clone(on)
	}
	d.release()
	d.trim()
	d.fill()
	d.release()
	d.chain()
}

// A candidate is a replica that a shard over its quota may release.
type candidate struct {
	wrong bool // the partition has too many replicas in the shard's zone
	score uint64
	p     int
	shard int32
}

// release moves replicas from shards over their quota to shards under it, and
// drops excess replicas, as far as single moves suffice.
func (d *division) release() {
	open := d.under()
	for _, c := range d.candidates() {
		if d.load[c.shard] <= d.quota[c.shard] || !slices.Contains(d.on[c.p], c.shard) {
			continue
		}
		if len(d.on[c.p]) > d.replicas {
			d.remove(c.p, c.shard)
			continue
		}
		to := d.best(c.p, open, func(i int32) bool { return d.load[i] < d.quota[i] && d.allows(c.p, c.shard, i) })
		if to >= 0 {
			d.remove(c.p, c.shard)
			d.add(c.p, to)
		}
	}
}

func (d *division) candidates() []candidate {
	var all []candidate
	for p, on := range d.on {
		key := d.partKey(p)
		for _, i := range on {
			if d.load[i] > d.quota[i] {
				z := d.zone[i]
				all = append(all, candidate{d.count(p, z) > d.most[z], d.score(^key, i), p, i})
			}
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		if a.wrong != b.wrong {
			if a.wrong {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.p, b.p), cmp.Compare(a.shard, b.shard))
	})
	return all
}

// under returns the shards under their quota.
func (d *division) under() []int32 {
	var under []int32
	for i := range d.load {
		if d.load[i] < d.quota[i] {
			under = append(under, int32(i))
		}
	}
	return under
}

// best returns the shard with the best score for p among those that fit, or -1.
func (d *division) best(p int, shards []int32, fits func(int32) bool) int32 {
	best, lowest, key := int32(-1), uint64(0), d.partKey(p)
	for _, i := range shards {
		if s := d.score(key, i); (best < 0 || s < lowest) && fits(i) {
			best, lowest = i, s
		}
	}
	return best
}

// count returns the number of replicas of p in zone z.
func (d *division) count(p, z int) int {
	n := 0
	for _, i := range d.on[p] {
		if d.zone[i] == z {
			n++
		}
	}
	return n
}

// crowds reports whether p has more than most replicas in some zone.
func (d *division) crowds(p int) bool {
	return slices.ContainsFunc(d.on[p], func(i int32) bool { return d.count(p, d.zone[i]) > d.most[d.zone[i]] })
}

// allows reports whether p may move from one shard to another without exceeding
// the most of a zone; a move out of a zone above its most is allowed.
func (d *division) allows(p int, from, to int32) bool {
	a, b := d.zone[from], d.zone[to]
	if a == b {
		return d.count(p, a) <= d.most[a] && !slices.Contains(d.on[p], to)
	}
	return d.count(p, b) < d.most[b] && !slices.Contains(d.on[p], to)
}

// trim removes excess replicas, in total and per zone.
func (d *division) trim() {
	for p := range d.on {
		for {
			crowded := d.crowds(p)
			if !crowded && len(d.on[p]) <= d.replicas {
				break
			}
			d.remove(p, d.worst(p, func(i int32) bool {
				return !crowded || d.count(p, d.zone[i]) > d.most[d.zone[i]]
			}))
		}
	}
}

// worst returns the shard that should drop p, preferring those over their quota.
func (d *division) worst(p int, fits func(int32) bool) int32 {
	worst, over, key := int32(-1), false, d.partKey(p)
	var lowest uint64
	for _, i := range d.on[p] {
		if !fits(i) {
			continue
		}
		isOver, s := d.load[i] > d.quota[i], d.score(^key, i)
		if worst < 0 || isOver && !over || isOver == over && s < lowest {
			worst, over, lowest = i, isOver, s
		}
	}
	return worst
}

// fill adds the missing replicas of partitions: on the shard that would hold it
// if nobody held anything, otherwise on one under its quota, otherwise on any.
func (d *division) fill() {
	var fresh *division
	open := d.under()
	for p := range d.on {
		for len(d.on[p]) < d.replicas {
			if fresh == nil {
				fresh = d.again()
			}
			fits := func(i int32) bool {
				return d.count(p, d.zone[i]) < d.most[d.zone[i]] && !slices.Contains(d.on[p], i)
			}
			hasRoom := func(i int32) bool { return d.load[i] < d.quota[i] && fits(i) }
			to := d.best(p, fresh.on[p], hasRoom)
			if to < 0 {
				to = d.best(p, open, hasRoom)
			}
			if to < 0 {
				to = d.best(p, d.all, fits)
			}
			d.add(p, to)
		}
	}
}

// again returns the division of the same shards if nobody held anything.
func (d *division) again() *division {
	f := *d
	f.load = make([]int, len(d.load))
	f.on = make([][]int32, len(d.on))
	f.fresh()
	return &f
}
