package client

import (
	"math/rand/v2"
	"slices"
)

// maxOthers is the number of other nodes of the map that a call asks when those of Options.Addrs do not answer.
const maxOthers = 3

// route returns the nodes in the order in which they are asked for one call, each once: first those that hold the partition,
// then those of Options.Addrs, then a few others of the map, and last those of all these that are failing. preferred returns
// indexes of nodes in the map, the best first, which are those in the zone of the client. A failing node that only failing
// ones precede is probed.
func (c *Client) route(d *database, preferred func(m *partitions) []int) []*node {
	var all, failing []*node
	add := func(n *node) {
		switch {
		case slices.Contains(all, n) || slices.Contains(failing, n):
		case n.isFailing() && !(len(all) == 0 && n.probe(c.now())):
			failing = append(failing, n)
		default:
			all = append(all, n)
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
	return append(all, failing...)
}
