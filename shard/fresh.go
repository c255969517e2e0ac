package shard

// fresh assigns partitions that nobody holds. The partitions choose one after
// another, by score, among the shards and zones with free quota. Two rules
// guarantee that it ends with a complete assignment: a shard whose free quota
// equals the number of partitions left is chosen by each of them, and each
// partition gets at least least and at most most replicas in a zone.
func (d *division) fresh() {
	f := freshness{division: d, best: make([][]pick, d.zones), room: make([]int, d.zones), extra: d.replicas}
	for i, q := range d.quota {
		f.room[d.zone[i]] += q
		if q > 0 {
			f.open = append(f.open, spot{d.keys[i], d.inverse[i], q, int32(i), int32(d.zone[i])})
		}
	}
	for _, least := range d.least {
		f.extra -= least
	}
	for p := range d.on {
		f.rank(p)
		f.choose(p)
	}
}

type freshness struct {
	*division
	open  []spot
	room  []int    // by zone: free quota
	best  [][]pick // by zone: candidates for the current partition
	extra int      // replicas of a partition above the sum of the zones' least
	picks []pick
}

// spot is a shard with free quota, and the inputs of its score, stored together
// because all spots are visited for each partition.
type spot struct {
	key, inverse uint64
	room         int
	shard, zone  int32
}

// pick is a candidate for a partition; lower scores are better.
type pick struct {
	score uint64
	spot  int
}

// rank finds the best spots of each zone for partition p, and removes those
// without free quota.
func (f *freshness) rank(p int) {
	for z := range f.best {
		f.best[z] = f.best[z][:0]
	}
	left, key, kept := len(f.on)-p, f.partKey(p), 0
	for at := range f.open {
		if f.open[at].room == 0 {
			continue
		}
		if at != kept {
			f.open[kept] = f.open[at]
		}
		s := &f.open[kept]
		score := score(key, s.key, s.inverse) + 1
		if s.room == left {
			score = 0
		}
		best, most := f.best[s.zone], f.most[s.zone]
		if len(best) < most || score < best[most-1].score {
			f.best[s.zone] = insert(best, pick{score, kept}, most)
		}
		kept++
	}
	f.open = f.open[:kept]
}

// choose gives partition p the least number of replicas in each zone, and the
// remaining ones to zones below most.
func (f *freshness) choose(p int) {
	left := len(f.on) - p
	f.picks = f.picks[:0]
	for z, best := range f.best {
		over := f.room[z] - f.least[z]*left
		for _, b := range best[:f.least[z]] {
			f.take(p, b)
		}
		if over == 0 {
			continue
		}
		b := best[f.least[z]]
		if over == left {
			b.score = 0
		}
		f.picks = insert(f.picks, b, f.extra)
	}
	for _, b := range f.picks {
		f.take(p, b)
	}
}

func (f *freshness) take(p int, b pick) {
	s := &f.open[b.spot]
	s.room--
	f.room[s.zone]--
	f.add(p, s.shard)
}

// insert inserts b and keeps the best n in ascending order.
func insert(best []pick, b pick, n int) []pick {
	if len(best) == n {
		if n == 0 || best[n-1].score <= b.score {
			return best
		}
		best = best[:n-1]
	}
	best = append(best, b)
	for at := len(best) - 1; at > 0 && best[at-1].score > b.score; at-- {
		best[at], best[at-1] = best[at-1], b
	}
	return best
}
