package shard

import "slices"

// chain brings every shard to its quota by chains of moves: a shard under its
// quota takes a partition from a second shard, which takes another from a third,
// and so on up to a shard over its quota. Since a division with all quotas
// exists, such a chain exists for each shard under its quota. Chains whose inner
// shards only pass on replicas that they do not hold yet cost one new replica
// each, and are applied first.
func (d *division) chain() {
	if len(d.under()) == 0 {
		return
	}
	c := d.newChains()
	for c.round(c.new) || c.round(c.has) {
	}
}

// chains searches for chains in rounds: breadth first from all shards under their
// quota at once, so that each chain is as short as possible.
type chains struct {
	*division
	has [][]int // by shard: its partitions
	new [][]int // by shard: the partitions among them that it does not hold yet

	through [][]int   // by shard: the partitions that it may pass on in this round as an inner shard
	left    [][]int32 // by zone: the shards not reached yet
	reached []bool
	links   []link // how each shard was reached
	queue   []int32
	ends    []int32   // reached shards over their quota
	crossed []bool    // by zone: whether waiting is complete
	waiting [][]offer // by zone: the partitions that it may take from others, if the taker does not have them yet
}

// link records that a shard can give partition p to another, which is -1 at the
// start of a chain.
type link struct {
	p  int
	to int32
}

type offer struct {
	p    int
	from int32
}

func (d *division) newChains() *chains {
	n := len(d.shards)
	c := &chains{division: d, has: make([][]int, n), new: make([][]int, n), reached: make([]bool, n), links: make([]link, n),
		left: make([][]int32, d.zones), crossed: make([]bool, d.zones), waiting: make([][]offer, d.zones)}
	for p, on := range d.on {
		for _, i := range on {
			c.gain(p, i)
		}
	}
	return c
}

func (c *chains) gain(p int, i int32) {
	c.has[i] = append(c.has[i], p)
	if !slices.Contains(c.was[p], i) {
		c.new[i] = append(c.new[i], p)
	}
}

// round performs one search, and reports whether it found a chain.
func (c *chains) round(through [][]int) bool {
	c.begin(through)
	for at := 0; at < len(c.queue); at++ {
		c.within(c.queue[at])
		c.across(c.queue[at])
	}
	found := false
	for _, end := range c.ends {
		for c.load[end] > c.quota[end] && c.apply(end) {
			found = true
		}
	}
	return found
}

func (c *chains) begin(through [][]int) {
	c.through, c.queue, c.ends = through, c.queue[:0], c.ends[:0]
	for z := range c.left {
		c.left[z], c.waiting[z], c.crossed[z] = c.left[z][:0], c.waiting[z][:0], false
	}
	for _, i := range c.all {
		c.reached[i] = c.load[i] < c.quota[i]
		if c.reached[i] {
			c.links[i].to = -1
			c.queue = append(c.queue, i)
		} else if len(c.gives(i)) > 0 {
			c.left[c.zone[i]] = append(c.left[c.zone[i]], i)
		}
	}
}

// gives returns the partitions that a shard may give: a shard over its quota ends the chain and may
// give any partition.
func (c *chains) gives(i int32) []int {
	if c.load[i] > c.quota[i] {
		return c.has[i]
	}
	return c.through[i]
}

func (c *chains) reach(from int32, l link) {
	c.reached[from], c.links[from] = true, l
	if c.load[from] > c.quota[from] {
		c.ends = append(c.ends, from)
	} else {
		c.queue = append(c.queue, from)
	}
}

// within reaches the shards of the same zone that can give a partition.
func (c *chains) within(to int32) {
	z := c.zone[to]
	c.left[z] = slices.DeleteFunc(c.left[z], func(from int32) bool {
		if c.reached[from] {
			return true
		}
		gives := c.gives(from)
		at := slices.IndexFunc(gives, func(p int) bool { return !slices.Contains(c.on[p], to) })
		if at >= 0 {
			c.reach(from, link{gives[at], to})
		}
		return at >= 0
	})
}

// across reaches the shards of other zones that can give a partition. All shards
// of the taker's zone can be given the same partitions, except those they already
// have.
func (c *chains) across(to int32) {
	z := c.zone[to]
	if !c.crossed[z] {
		for p := range c.on {
			if c.count(p, z) < c.most[z] {
				c.offers(p, z)
			}
		}
	}
	c.crossed[z] = true
	c.waiting[z] = slices.DeleteFunc(c.waiting[z], func(o offer) bool {
		if !c.reached[o.from] && slices.Contains(c.on[o.p], to) {
			return false
		}
		if !c.reached[o.from] {
			c.reach(o.from, link{o.p, to})
		}
		return true
	})
}

// offers records the shards that can give p to a shard of zone z.
func (c *chains) offers(p, z int) {
	for _, from := range c.on[p] {
		if c.zone[from] == z || c.reached[from] {
			continue
		}
		if c.load[from] > c.quota[from] || slices.Contains(c.through[from], p) {
			c.waiting[z] = append(c.waiting[z], offer{p, from})
		}
	}
}

// apply applies the chain that ends at a shard, and reports whether that was
// still possible after the other chains.
func (c *chains) apply(end int32) bool {
	from := end
	for ; c.links[from].to >= 0; from = c.links[from].to {
		l := c.links[from]
		if !slices.Contains(c.on[l.p], from) || !c.allows(l.p, from, l.to) {
			return false
		}
	}
	if c.load[from] >= c.quota[from] {
		return false
	}
	for from = end; c.links[from].to >= 0; from = c.links[from].to {
		l := c.links[from]
		c.remove(l.p, from)
		c.add(l.p, l.to)
		drop(&c.has[from], l.p)
		drop(&c.new[from], l.p)
		c.gain(l.p, l.to)
	}
	return true
}

func drop(list *[]int, p int) {
	if at := slices.Index(*list, p); at >= 0 {
		*list = slices.Delete(*list, at, at+1)
	}
}
