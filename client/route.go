package client

import (
	"math/rand/v2"
	"slices"
)

// route is the order in which the nodes are asked for one call: first those that hold the partition, then those of
// Options.Addrs, then a few others of the map, and last those of all these that are failing. Each is asked once.
type route struct {
	c     *Client
	queue []*node
	last  []*node // failing nodes, in the order in which they were passed over
}

// maxOthers is the number of other nodes of the map that a call asks when those of Options.Addrs do not answer.
const maxOthers = 3

// newRoute returns the route to a db; preferred returns indexes of nodes in its map, the best first.
func (c *Client) newRoute(d *database, preferred func(m *partitions) []int) *route {
	r := &route{c: c}
	add := func(n *node) {
		if !slices.Contains(r.queue, n) {
			r.queue = append(r.queue, n)
		}
	}
	m := d.current.Load()
	if m != nil && preferred != nil {
		for _, i := range preferred(m) {
			add(m.nodes[i])
		}
	}
	for _, i := range rand.Perm(len(c.seeds)) {
		add(c.seeds[i])
	}
	for range maxOthers {
		if m != nil && len(m.nodes) > 0 {
			add(m.nodes[rand.IntN(len(m.nodes))])
		}
	}
	return r
}

// node returns the next node, nil if there is none. For a hedged request it returns no failing one: if the first request
// is answered soon after, that would neither show that the node has recovered nor that it has not, and use up its pause.
func (r *route) node(hedge bool) *node {
	for len(r.queue) > 0 {
		n := r.queue[0]
		r.queue = r.queue[1:]
		if !(hedge && n.isFailing()) && n.admit(r.c.now()) {
			return n
		}
		r.last = append(r.last, n)
	}
	if hedge || len(r.last) == 0 {
		return nil
	}
	n := r.last[0]
	r.last = r.last[1:]
	return n
}

// shuffled returns a copy of a list in random order.
func shuffled(list []int) []int {
	list = slices.Clone(list)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
