package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sequins/shard"
	"sequins/zk"
)

// Settings have to be the same on all nodes of a cluster, or determine a node's
// share. They are published with the node.
type Settings struct {
	// Replication is the number of shards that hold each partition.
	Replication int `json:"replication"`
	// Assignment is the rule by which this node assigns partitions to shards. If it is empty, it follows the cluster's.
	Assignment shard.Assignment `json:"assignment,omitempty"`
	// Weight is this node's relative share. Zone is its failure domain.
	Weight float64 `json:"weight"`
	Zone   string  `json:"zone,omitempty"`
}

// Member is a node that data is divided among.
type Member struct {
	ShardID string
	Addr    string // host:port
	// Settings is nil for nodes of upstream's kind, which publish none.
	Settings *Settings
}

// membership is the set of members at a time. It is immutable.
type membership struct {
	all      []Member         // ordered by shard id and address; includes this node unless it is a router
	rule     shard.Assignment // by which this node assigns partitions; "" until it is known
	shards   []shard.Member   // to which it assigns them, without duplicates
	byAddr   map[string]Member
	listed   bool      // a listing has contained this node
	since    time.Time // time of the last change
	problems []string  // see Cluster.Problems
	logged   []string  // these, and the malformed entries
}

// parseMembers parses the znodes of nodes/. Malformed ones are left out and
// described in malformed.
func parseMembers(entries []zk.Entry) (members []Member, malformed []string) {
	for _, e := range entries {
		id, addr, err := zk.ParseNode(e.Name)
		if err != nil {
			malformed = append(malformed, err.Error())
			continue
		}
		m := Member{ShardID: id, Addr: addr}
		if len(e.Data) > 0 || e.Unreadable { // a node of upstream's kind has none
			m.Settings = new(Settings)
			if err = json.Unmarshal(e.Data, m.Settings); err == nil && !(m.Settings.Weight > 0 && m.Settings.Weight <= maxWeight) {
				err = fmt.Errorf("invalid weight %v", m.Settings.Weight)
			}
			if err != nil {
				malformed = append(malformed, fmt.Sprintf("settings of node %s: %v", e.Name, err))
				continue
			}
		}
		members = append(members, m)
	}
	return members, malformed
}

// maxWeight is above the maximum of the configuration.
const maxWeight = 1e6

// newMembership returns the membership of members and self, which is nil for a router. rule is the cluster's.
//
// Nodes of upstream's kind divide data by round_robin, among all members. By balanced they get no share: the other nodes hold
// every partition without them, whenever they come and go.
func newMembership(members []Member, self *Member, own Settings, rule shard.Assignment, now time.Time) *membership {
	if self != nil {
		members = slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.Addr == self.Addr })
		members = append(members, *self)
	}
	slices.SortFunc(members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.ShardID, b.ShardID), cmp.Compare(a.Addr, b.Addr))
	})
	own.Assignment = cmp.Or(own.Assignment, rule)
	ms := &membership{all: members, rule: own.Assignment, byAddr: make(map[string]Member, len(members)), since: now}
	for _, m := range members {
		ms.byAddr[m.Addr] = m
		ms.problems = append(ms.problems, m.mismatches(own, rule)...)
		if m.Settings == nil && ms.rule == shard.Balanced {
			continue
		}
		s := m.settings()
		ms.shards = append(ms.shards, shard.Member{ShardID: m.ShardID, Weight: s.Weight, Zone: s.Zone})
	}
	ms.shards = slices.Compact(ms.shards)
	return ms
}

// dividesLike reports whether partitions are assigned alike to two memberships.
func (ms *membership) dividesLike(other *membership) bool {
	return ms.rule == other.rule && slices.Equal(ms.shards, other.shards)
}

// settings returns those of upstream's kind if the node has published none.
func (m Member) settings() Settings {
	if m.Settings == nil {
		return Settings{Assignment: shard.RoundRobin, Weight: 1}
	}
	return *m.Settings
}

// mismatches describes the settings of another node that differ from this node's, so that the two do not divide data alike.
// rule is that of nodes that follow the cluster's.
func (m Member) mismatches(own Settings, rule shard.Assignment) (all []string) {
	s := m.settings()
	theirs := cmp.Or(s.Assignment, rule)
	switch {
	case theirs == own.Assignment || theirs == "" || own.Assignment == "":
	case m.Settings == nil:
		all = append(all, fmt.Sprintf("node %s (shard %s) is of the original sequins and divides the data by %s, and this node by %s: "+
			"it gets no share, and what it holds is in addition to the replicas on the others; replace it",
			m.Addr, m.ShardID, theirs, own.Assignment))
	default:
		all = append(all, m.differs("sharding.assignment", theirs, own.Assignment))
	}
	if m.Settings != nil && s.Replication != own.Replication {
		all = append(all, m.differs("sharding.replication", s.Replication, own.Replication))
	}
	return all
}

func (m Member) differs(what string, theirs, ours any) string {
	return fmt.Sprintf("node %s (shard %s) has %s %v, and this node %v: they divide the data differently, "+
		"so that partitions may have too few holders; configure all nodes alike and restart the changed ones", m.Addr, m.ShardID, what, theirs, ours)
}
