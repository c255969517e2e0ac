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
	m := &wire.Partitions{DB: r.db.name, Version: h.Name, Partitioner: h.Partitioner.String(), Partitions: h.Partitions, Replicas: [][]int{}}
	own := wire.Self
	if strings.Contains(r.reader.opts.Name, ":") { // a single node has a name without a port
		own = r.reader.opts.Name
	}
	index := map[string]int{own: 0}
	m.Nodes = []string{own}
	for p, here := range h.Held() {
		replicas := []int{}
		if here {
			replicas = append(replicas, 0)
		}
		for _, peer := range h.Following.Peers(p) {
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
	m.Zones = r.reader.zones(m.Nodes)
	return m, Found
}

// zones returns the zones of nodes, of which the first is this one; nil if none has one.
func (rd *Reader) zones(nodes []string) []string {
	z := &rd.opts.Zones
	if z.Of == nil {
		return nil
	}
	all := []string{z.Own}
	for _, addr := range nodes[1:] {
		all = append(all, z.Of(addr))
	}
	if slices.Max(all) == "" {
		return nil
	}
	return all
}
