package reads

import (
	"slices"
	"strings"

	"sequins/internal/wire"
)

// Partitions returns the map of the version that q asks for and Found, or nil and the reason why there is none, as for
// Do. q.Key is not used, and the front end sets Scheme.
func (r *Read) Partitions(q *Query) (*wire.Partitions, Outcome) {
	if o := r.open(q); o != Found {
		return nil, o
	}
	h := r.handle
	m := &wire.Partitions{DB: r.db.name, Version: h.Version(), Partitioner: h.Partitioner().String(), Partitions: h.Partitions(), Replicas: [][]int{}}
	own := r.reader.address()
	index := map[string]int{own: 0}
	m.Nodes = []string{own}
	for p, here := range h.Held() {
		replicas := []int{}
		if here {
			replicas = append(replicas, 0)
		}
		for _, peer := range h.Peers(p) {
			i, known := index[peer]
			if !known {
				i = len(m.Nodes)
				index[peer] = i
				m.Nodes = append(m.Nodes, peer)
			}
			replicas = append(replicas, i)
		}
		slices.Sort(replicas)
		m.Replicas = append(m.Replicas, slices.Compact(replicas))
	}
	return m, Found
}

// address returns the address by which other nodes and clients reach this node, or wire.Self. A single node has a
// name without a port.
func (rd *Reader) address() string {
	if strings.Contains(rd.opts.Name, ":") {
		return rd.opts.Name
	}
	return wire.Self
}
