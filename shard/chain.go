package shard

import "slices"

// chain brings every shard to its quota, by chains of moves: one under it takes
// a partition from a second, which takes another from a third, and so on to
// one over it. As a division exists that has every quota, so does a chain for
// each shard that is under it. Chains whose inner shards only pass on what they
// do not hold yet cost one new replica each, and go first.
func (d *division) chain() {
	if len(d.under()) == 0 {
		return
	}
	c := d.newChains()
	for c.round(c.new) || c.round(c.has) {
	}
}

// chains searches for chains in rounds: breadth first from all shards under
// their quota at once, so that each is as short as it can be.
type chains struct {
	*division
	has [][]int // the partitions of each shard
	new [][]int // those of them that it does not hold yet

	through [][]int   // what inner shards may pass on in this round
	left    [][]int32 // of each zone, the shards that have not been reached
	reached []bool
	links   []link // how
	queue   []int32
	ends    []int32   // the shards over their quota that were reached
	crossed []bool    // of each zone: whether waiting is complete
	waiting [][]offer // what a zone may take from others, once the taker is one that does not have it
}

// A link says that a shard can give partition p to another, which is -1 where
// a chain begins.
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

// round searches once, and says whether it found anything.
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

// gives is what a shard may give in a chain: one over its quota is the end of
// it, and may give anything.
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

// within reaches the shards of the same zone that can give something.
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

// across reaches the shards of other zones that can give something. What they
// can give is the same for all of the zone, except that a shard cannot take
// what it has.
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

// offers adds to what may come into zone z those that can give p.
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

// apply carries out the chain that ends at a shard, unless others have made
// it impossible.
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
