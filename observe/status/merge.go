package status

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sequins/internal/names"
	"sequins/shard"
	"sequins/version/pin"
)

// A Peer is another node of the cluster.
type Peer struct {
	Addr    string `json:"-"` // host:port
	ShardID string `json:"shard_id"`
	Zone    string `json:"zone,omitempty"`
	// Weight is its share of the partitions, see Status.Weight.
	Weight float64 `json:"weight,omitempty"`
	// Error is the reason why its status is unknown.
	Error string `json:"error,omitempty"`
	// What follows is from its status. Level and Health are its own view, and Waiting is what it waits for.
	Build     string    `json:"build,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	Disk      Disk      `json:"disk,omitzero"`
	Traffic   Traffic   `json:"traffic,omitzero"`
	Level     string    `json:"level,omitempty"`
	Health    string    `json:"health,omitempty"`
	Waiting   []Wait    `json:"waiting,omitempty"`
}

// maxPeerWaits limits what is kept of what another node waits for.
const maxPeerWaits = 5

// Self returns what Peers would have of this node.
func (st *Status) Self() Peer {
	return Peer{Addr: st.Node, ShardID: st.ShardID, Zone: st.Zone, Weight: st.Weight, Build: st.Build, StartedAt: st.StartedAt, Disk: st.Disk, Traffic: st.Traffic,
		Level: st.Level, Health: st.Health, Waiting: st.Waiting[:min(len(st.Waiting), maxPeerWaits)]}
}

// Members returns this node and the others, in the order of their addresses.
func (st *Status) Members() []Peer {
	all := []Peer{st.Self()}
	for addr, p := range st.Peers {
		p.Addr = addr
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Peer) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}

// Answer is the status of one other node.
type Answer struct {
	Peer
	Status Status
}

// Merge adds the status of other nodes to that of this one.
func (st *Status) Merge(answers []Answer) {
	st.Peers = make(map[string]Peer, len(answers))
	own := make(map[string]map[string]Version, len(st.DBs))
	for db, ours := range st.DBs {
		own[db] = maps.Clone(ours.Versions)
		ours.ClusterTraffic = ours.Traffic
		st.DBs[db] = ours
	}
	for _, a := range answers {
		p := a.Peer
		if p.Error == "" {
			p = a.Status.Self()
			p.Addr, p.ShardID, p.Zone, p.Weight = a.Addr, a.ShardID, a.Zone, a.Weight
		}
		st.Peers[a.Addr] = p
		for db, theirs := range a.Status.DBs {
			if !names.ValidDatabase(db) {
				continue // no node has it
			}
			st.DBs[db] = st.DBs[db].merge(theirs, a.Addr, own[db])
		}
	}
}

// merge adds the status of a db on the node at addr. For versions that this node does not know, the other
// node's description is used; own are the versions that this node knows.
func (d DB) merge(theirs DB, addr string, own map[string]Version) DB {
	if d.Versions == nil {
		d.Versions = make(map[string]Version)
	}
	d.ClusterTraffic.Add(theirs.Traffic)
	if theirs.Pin != nil {
		if d.Pins == nil {
			d.Pins = make(map[string]pin.File)
		}
		d.Pins[addr] = *theirs.Pin
	}
	for name, v := range theirs.Versions {
		n, here := v.Nodes[addr]
		if !here || !names.Valid(name) {
			continue
		}
		ours, known := d.Versions[name]
		if !known {
			ours = Version{Path: v.Path, TargetReplication: v.TargetReplication}
		}
		if ours.Nodes == nil {
			ours.Nodes = make(map[string]OnNode)
		}
		if own[name].NumPartitions == 0 {
			ours.NumPartitions = max(ours.NumPartitions, min(v.NumPartitions, shard.MaxPartitions))
		}
		if all := existing(n.Partitions, ours.NumPartitions); len(all) < len(n.Partitions) {
			n.Partitions, n.PartitionBytes = all, nil // which sizes belong to which is not clear
		}
		ours.Nodes[addr] = n
		d.Versions[name] = ours
	}
	return d
}

// existing returns the partitions that a version of n partitions has, without duplicates. It does not modify
// the slice, which other readers of the status share.
func existing(partitions []int, n int) []int {
	partitions = partitions[:min(len(partitions), n)]
	seen := make(map[int]bool, len(partitions))
	strange := func(p int) bool {
		odd := p < 0 || p >= n || seen[p]
		seen[p] = true
		return odd
	}
	return slices.DeleteFunc(slices.Clone(partitions), strange)
}
