package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"sequins/shard"
	"sequins/zk"
)

// Settings are those that the nodes of a cluster have to share, or divide the
// data by. They are published with the node.
type Settings struct {
	// Replication is how many shards hold each partition.
	Replication int `json:"replication"`
	// Assignment is the rule by which partitions are divided.
	Assignment shard.Assignment `json:"assignment"`
	// Partitioners describes by which functions keys are divided, for all
	// databases; it is compared, never read.
	Partitioners string `json:"partitioners"`
	// Weight is this node's share, and Zone where it stands.
	Weight float64 `json:"weight"`
	Zone   string  `json:"zone,omitempty"`
}

// maxSettings bounds what is read of another node's settings, in bytes.
const maxSettings = 64 << 10

// A Member is one node that takes part in dividing the data.
type Member struct {
	ShardID string
	Addr    string // host:port
	// Settings are nil for a node that does not say: one of an older release.
	Settings *Settings
	// Refuted are the partitioners that the node has found refuted, by
	// "db/version".
	Refuted map[string][]string
}

// nodeData is the data of a node's znode, as JSON:
//
//	{"replication":2,"assignment":"balanced",…,"refuted":{"db/version":["hadoop"]}}
//
// Other fields are ignored. Older releases have no refuted, and ignore it.
type nodeData struct {
	Settings
	Refuted map[string][]string `json:"refuted,omitempty"`
}

// A membership is the nodes that were there at a time. It is never changed.
type membership struct {
	all       []Member          // by shard id and address, this node always among them unless it is a router
	shardOf   map[string]string // by address
	signature uint64            // the same for memberships that divide data alike
	entries   []zk.Entry        // what it was made from
	listed    bool              // a listing that all of this comes from has had this node in it
	since     time.Time         // of the last change
	problems  []string          // what keeps the nodes from being one cluster
}

// parseMembers reads the znodes of nodes/. Those that make no sense are left
// out, and told of in the error texts.
func parseMembers(entries []zk.Entry) (members []Member, malformed []string) {
	for _, e := range entries {
		id, addr, err := zk.ParseNode(e.Name)
		if err != nil {
			malformed = append(malformed, err.Error())
			continue
		}
		m := Member{ShardID: id, Addr: addr}
		if len(e.Data) > 0 {
			data, err := parseNodeData(e.Data)
			if err != nil {
				malformed = append(malformed, fmt.Sprintf("the settings of node %s: %v", e.Name, err))
			} else {
				m.Settings, m.Refuted = &data.Settings, data.Refuted
			}
		}
		members = append(members, m)
	}
	return members, malformed
}

func parseNodeData(data []byte) (d nodeData, err error) {
	if len(data) > maxSettings {
		return d, fmt.Errorf("they are %d bytes, and may be %d", len(data), maxSettings)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return d, err
	}
	if !(d.Weight > 0 && d.Weight <= maxWeight) {
		return d, fmt.Errorf("their weight is %v", d.Weight)
	}
	return d, nil
}

// maxWeight is beyond what a configuration may say.
const maxWeight = 1e6

// newMembership sorts the members, this node among them, and works out what
// follows of them. self is nil for a router.
func newMembership(members []Member, self *Member, own Settings, now time.Time) *membership {
	if self != nil {
		members = slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.Addr == self.Addr })
		members = append(members, *self)
	}
	slices.SortFunc(members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.ShardID, b.ShardID), cmp.Compare(a.Addr, b.Addr))
	})
	ms := &membership{all: members, shardOf: make(map[string]string, len(members)), since: now}
	for _, m := range members {
		ms.shardOf[m.Addr] = m.ShardID
		if p := m.mismatch(own); p != "" {
			ms.problems = append(ms.problems, p)
		}
	}
	hash := fnv.New64a()
	for _, s := range ms.shards() {
		fmt.Fprintf(hash, "%q %v %q\n", s.ShardID, s.Weight, s.Zone)
	}
	ms.signature = hash.Sum64()
	return ms
}

// isOf reports whether a membership was made from a listing.
func (ms *membership) isOf(entries []zk.Entry) bool {
	return len(ms.entries) == len(entries) && (len(entries) == 0 || &ms.entries[0] == &entries[0])
}

// settings are those of a node of an older release where there are none.
func (m Member) settings() Settings {
	if m.Settings == nil {
		return Settings{Assignment: shard.RoundRobin, Weight: 1}
	}
	return *m.Settings
}

// mismatch says what another node does differently from this one, so that the
// two do not divide data alike; "" if nothing.
func (m Member) mismatch(own Settings) string {
	s := m.settings()
	differs := func(what string, theirs, ours any) string {
		return fmt.Sprintf("node %s (shard %s) has %s %v, and this node %v: "+
			"they do not divide the data alike; give all nodes the same, and restart those that are changed",
			m.Addr, m.ShardID, what, theirs, ours)
	}
	switch {
	case s.Assignment != own.Assignment:
		return differs("sharding.assignment", s.Assignment, own.Assignment)
	case m.Settings == nil:
		return ""
	case s.Replication != own.Replication:
		return differs("sharding.replication", s.Replication, own.Replication)
	case s.Partitioners != own.Partitioners:
		return differs("partitioner", s.Partitioners, own.Partitioners)
	}
	return ""
}

// shards are the members as shard.Assign wants them, those that are alike once.
func (ms *membership) shards() []shard.Member {
	var shards []shard.Member
	for _, m := range ms.all {
		s := m.settings()
		shards = append(shards, shard.Member{ShardID: m.ShardID, Weight: s.Weight, Zone: s.Zone})
	}
	return slices.Compact(shards)
}
