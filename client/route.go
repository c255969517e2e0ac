package client

import (
	"math/rand/v2"
	"slices"
)

// route is the order in which the nodes are asked for one call: first those that hold the partition, then those of
// Options.Addrs, then a few others of the map, and last those of all these that are failing. Each is asked once.
type route struct {
	c     *Client
	stage int
	queue []*node // of this stage
	tried []*node
	last  []*node // failing nodes, in the order in which they were passed over

	m         *partitions
	preferred []int
}

// maxOthers is the number of other nodes of the map that a call asks when those of Options.Addrs do not answer.
const maxOthers = 3

// newRoute returns the route to a db; preferred are indexes of nodes in its map, the best first.
func (c *Client) newRoute(d *database, preferred func(m *partitions) []int) *route {
	r := &route{c: c, m: d.current.Load()}
	if preferred != nil && r.m != nil {
		r.preferred = preferred(r.m)
	}
	return r
}

// node returns the next node, nil if there is none. For a hedged request it returns no failing one: if the first request
// is answered soon after, that would neither show that the node has recovered nor that it has not, and use up its pause.
func (r *route) node(hedge bool) *node {
	for {
		for len(r.queue) > 0 {
			n := r.queue[0]
			r.queue = r.queue[1:]
			if slices.Contains(r.tried, n) || slices.Contains(r.last, n) {
				continue
			}
			if hedge && n.isFailing() || !n.admit(r.c.now()) {
				r.last = append(r.last, n)
				continue
			}
			r.tried = append(r.tried, n)
			return n
		}
		if r.stage < 3 {
			r.stage++
			r.queue = r.candidates()
			continue
		}
		return r.failing(hedge)
	}
}

// failing returns the next failing node.
func (r *route) failing(hedge bool) *node {
	if hedge || len(r.last) == 0 {
		return nil
	}
	n := r.last[0]
	r.last = r.last[1:]
	r.tried = append(r.tried, n)
	return n
}

// candidates returns the nodes of the stage.
func (r *route) candidates() (nodes []*node) {
	switch r.stage {
	case 1:
		for _, i := range r.preferred {
			nodes = append(nodes, r.m.nodes[i])
		}
		return nodes
	case 2:
		nodes = slices.Clone(r.c.seeds)
		rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	case 3:
		for range maxOthers {
			if r.m != nil && len(r.m.nodes) > 0 {
				nodes = append(nodes, r.m.nodes[rand.IntN(len(r.m.nodes))])
			}
		}
	}
	return nodes
}

// shuffled returns a copy of a list in random order.
func shuffled(list []int) []int {
	list = slices.Clone(list)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
