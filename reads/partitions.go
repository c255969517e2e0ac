package reads

import (
	"slices"
	"strings"

	"sequins/version"
)

// Self stands for the address of this node in Partitions.Nodes if the node does not know it: the address that
// the client has used.
const Self = "self"

// Partitions is the map from keys to nodes for one version of a db: the partition of a key is
// Partitioner(key) mod Partitions, and Replicas are the nodes that hold it. It may be out of date when it
// arrives: a node forwards requests for partitions that it does not hold.
type Partitions struct {
	DB          string `json:"db"`
	Version     string `json:"version"`
	Partitioner string `json:"partitioner"` // a name of shard.Partitioner
	Partitions  int    `json:"partitions"`  // 0 for an empty version, in which every key is absent
	// Scheme is that of the URLs of the nodes: http or https. The front end sets it.
	Scheme string `json:"scheme"`
	// Nodes are the addresses (host:port) of this node and of others that hold a partition, each once. The
	// first is this node, or Self.
	Nodes []string `json:"nodes"`
	// Replicas are, for each partition, the indexes in Nodes of the nodes that hold it, ascending. It is empty
	// for partitions that no known node holds.
	Replicas [][]int `json:"replicas"`
}

// Partitions returns the map of the version that q asks for and Found, or nil and the reason why there is none, as for
// Do. q.Key is not used.
func (r *Read) Partitions(q *Query) (*Partitions, Outcome) {
	if o := r.open(q); o != Found {
		return nil, o
	}
	h := r.handle
	m := &Partitions{DB: r.db.name, Version: h.Version(), Partitioner: h.Partitioner().String(), Partitions: h.Partitions(), Replicas: [][]int{}}
	m.fill(h, r.reader.address())
	return m, Found
}

// fill sets Nodes and Replicas.
func (m *Partitions) fill(h *version.Handle, own string) {
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
}

// address returns the address by which other nodes and clients reach this node, or Self. A single node has a
// name without a port.
func (rd *Reader) address() string {
	if strings.Contains(rd.opts.Name, ":") {
		return rd.opts.Name
	}
	return Self
}
