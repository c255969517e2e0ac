package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"sequins/internal/names"
	"sequins/internal/wire"
	"sequins/shard"
)

// Limits of a map. The largest one that nodes send, of 65,536 partitions, has 1 MiB.
const (
	maxMap      = 4 * mebibyte
	maxNodes    = 4096
	maxReplicas = 64
)

// partitions is the map from keys to nodes for one version of a db. It does not change.
type partitions struct {
	version     string
	partitioner shard.Partitioner
	replicas    [][]int // by partition, indexes in nodes; empty for an empty version
	nodes       []*node
}

// parseMap parses the answer of the node at asked, and rejects it unless it is consistent, is about db, and its nodes
// speak the client's scheme.
func parseMap(body []byte, db, scheme, asked string) (*wire.Partitions, shard.Partitioner, error) {
	var a wire.Partitions
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, 0, fmt.Errorf("the map of partitions cannot be read: %w", err)
	}
	p, err := shard.ParsePartitioner(a.Partitioner)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case a.DB != db || !names.Valid(a.Version):
		return nil, 0, errors.New("the map of partitions is of another database or without a version")
	case a.Scheme != scheme:
		return nil, 0, fmt.Errorf("the nodes of the map of partitions use %q and this client %s", a.Scheme, scheme)
	case a.Partitions < 0 || a.Partitions > shard.MaxPartitions || len(a.Replicas) != a.Partitions || len(a.Nodes) > maxNodes:
		return nil, 0, fmt.Errorf("the map of partitions has %d partitions of %d, on %d nodes", len(a.Replicas), a.Partitions, len(a.Nodes))
	}
	return &a, p, checkNodes(&a, asked)
}

// checkNodes checks the addresses, the zones and the indexes, and replaces wire.Self.
func checkNodes(a *wire.Partitions, asked string) error {
	if len(a.Zones) > 0 && len(a.Zones) != len(a.Nodes) {
		return fmt.Errorf("the map of partitions has the zones of %d nodes, of %d", len(a.Zones), len(a.Nodes))
	}
	for i, addr := range a.Nodes {
		if addr == wire.Self {
			a.Nodes[i] = asked
		} else if !validAddr(addr) {
			return fmt.Errorf("the map of partitions has a node %.300q, which is no address", addr)
		}
	}
	for p, replicas := range a.Replicas {
		if len(replicas) > maxReplicas {
			return fmt.Errorf("the map of partitions has %d replicas of partition %d", len(replicas), p)
		}
		for _, n := range replicas {
			if n < 0 || n >= len(a.Nodes) {
				return fmt.Errorf("the map of partitions has partition %d on node %d of %d", p, n, len(a.Nodes))
			}
		}
	}
	return nil
}

// of returns the replicas of the partition of a key, as indexes in nodes.
func (m *partitions) of(key []byte) []int {
	if m == nil || len(m.replicas) == 0 {
		return nil
	}
	return m.replicas[m.partitioner.Partition(key, len(m.replicas))]
}

// shuffled returns nodes in random order, those in the zone of the client first.
func (m *partitions) shuffled(list []int) []int {
	list = slices.Clone(list)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	slices.SortStableFunc(list, func(a, b int) int { return m.near(b) - m.near(a) })
	return list
}

// near returns 1 for a node in the zone of the client, and 0 for others.
func (m *partitions) near(n int) int {
	if m.nodes[n].isNear() {
		return 1
	}
	return 0
}

// ofAll returns the nodes that hold the partitions of most keys, at most three, the best first: up to two in the zone of the
// client, then others, as that zone may be lost. Nodes that hold equally many are in random order.
func (m *partitions) ofAll(keys [][]byte) []int {
	if m == nil || len(m.replicas) == 0 {
		return nil
	}
	held := make([]int, len(m.nodes))
	for _, key := range keys {
		for _, n := range m.of(key) {
			held[n]++
		}
	}
	order, near := make([]int, 0, len(held)), 0
	for n, keys := range held {
		if keys > 0 {
			order = append(order, n)
			near += m.near(n)
		}
	}
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(m.near(b)-m.near(a), held[b]-held[a]) })
	if near > 2 {
		order = slices.Delete(order, 2, near)
	}
	return order[:min(3, len(order))]
}
