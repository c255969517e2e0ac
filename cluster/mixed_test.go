//go:build integration

package cluster

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sequins/shard"
	"sequins/test/expect"
	"sequins/zk"
)

// mixedCluster is a cluster of this sequins and of the original one. ZooKeeper is its fields, and nodes load in no time.
type mixedCluster struct {
	*testCluster
	random   *rand.Rand
	rules    map[shard.Assignment]bool // in ZooKeeper
	nodes    map[string]*holder        // that run
	lose     map[string]func()
	disks    map[string][]bool // what the others hold
	upstream map[string][]bool // the nodes of the original sequins that run, and what they hold
	first    shard.Assignment  // the rule that the first node chooses
	serves   bool              // every partition has had a holder since a node runs
}

const mixedPartitions, mixedReplicas = 12, 2

// Whatever the order in which nodes of both kinds start and stop, every partition has a holder at each moment, by the rule balanced
// one of this sequins. The rule stays the one that the first node chose.
func TestEveryPartitionHasAHolder(t *testing.T) {
	for seed := range uint64(40) {
		m := newMixedCluster(t, seed)
		old := []string{"0", "b-", "z"}[seed%3] // its place among the shard ids
		if seed%2 == 0 {
			m.toggle(old)
			m.first = shard.RoundRobin
		}
		m.start("a")
		m.settle()
		for range 12 {
			m.event(old)
			m.settle()
			if len(m.rules) != 1 || !m.rules[m.first] {
				t.Fatalf("seed %d: the rules are %v, want %s", seed, m.rules, m.first)
			}
		}
		for id := range m.nodes {
			m.stop(id)
		}
	}
}

func newMixedCluster(t *testing.T, seed uint64) *mixedCluster {
	return &mixedCluster{
		testCluster: newTestCluster(t, "127.0.0.1:1", func(o *Options) {
			o.Settings.Assignment, o.Settings.Replication, o.HealAfter = "", mixedReplicas, time.Second
		}),
		random: rand.New(rand.NewPCG(seed, 0)), rules: make(map[shard.Assignment]bool),
		nodes: make(map[string]*holder), lose: make(map[string]func()),
		first: shard.Balanced, disks: make(map[string][]bool), upstream: make(map[string][]bool),
	}
}

// event lets something happen to the node of the original sequins, to one of the others, to all of them, or to ZooKeeper.
func (m *mixedCluster) event(old string) {
	switch id := string('a' + rune(m.random.IntN(4))); {
	case m.random.IntN(3) == 0:
		m.toggle(old)
	case m.random.IntN(8) == 0:
		m.serves = false
		ids := slices.Collect(maps.Keys(m.nodes))
		for _, id := range ids {
			m.stop(id)
		}
		for _, id := range ids {
			m.start(id)
		}
	case m.random.IntN(8) == 0:
		clear(m.rules)
	case m.nodes[id] == nil:
		m.start(id)
	case len(m.nodes) > 1:
		m.stop(id)
	}
}

// toggle starts or stops a node of the original sequins.
func (m *mixedCluster) toggle(old string) {
	if m.upstream[old] != nil {
		delete(m.upstream, old)
		return
	}
	m.upstream[old] = make([]bool, mixedPartitions)
}

// start starts a node of this sequins with what is on its disk.
func (m *mixedCluster) start(id string) {
	c, lose := m.node(id)
	h := &holder{c, c.follow("db", x.Input), make([]bool, mixedPartitions)}
	copy(h.held, m.disks[id])
	m.nodes[id], m.lose[id] = h, lose
	m.show(h)
	h.chooseRule()
	m.show(h)
	h.SetDivision(x.Division, mixedPartitions)
	h.advertise()
}

func (m *mixedCluster) stop(id string) {
	m.disks[id] = m.nodes[id].held
	m.lose[id]()
	delete(m.nodes, id)
}

// show lets a node see what is in ZooKeeper. If there is no rule, it creates its own.
func (m *mixedCluster) show(h *holder) {
	var nodes, rules, partitions []zk.Entry
	for id, other := range m.nodes {
		data, err := json.Marshal(other.o.Settings)
		expect.NoError(m.t, err)
		nodes = append(nodes, zk.Entry{Name: id + "@" + other.o.Addr, Data: data})
		for _, p := range other.has() {
			partitions = append(partitions, znode(p, other.o.Addr, x))
		}
	}
	for id, held := range m.upstream {
		nodes = append(nodes, zk.Entry{Name: id + "@" + id + ":1"})
		for p, here := range held {
			if here {
				partitions = append(partitions, znode(p, id+":1"))
			}
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(m.rules)) {
		rules = append(rules, zk.Entry{Name: string(rule)})
	}
	h.updateMembers(nodes)
	h.updateRule(rules)
	h.Following.(*following).updatePartitions(partitions)
	if len(rules) == 0 && h.rule != "" {
		m.rules[h.rule] = true
	}
}

// settle lets all nodes see what has happened, one after the other, and load and give up partitions until nothing changes.
func (m *mixedCluster) settle() {
	m.t.Helper()
	for range 5 {
		m.check()
		m.loadUpstream()
		ids := slices.Sorted(maps.Keys(m.nodes))
		m.random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		for _, id := range ids {
			h := m.nodes[id]
			m.show(h)
			m.check()
			h.assignAgain(time.Now().Add(time.Hour))
			h.load()
			m.check()
		}
	}
	m.serves = true
	m.check()
}

// loadUpstream lets the original nodes load what they assign to themselves. They give nothing up.
func (m *mixedCluster) loadUpstream() {
	var members []shard.Member
	for id := range m.nodes {
		members = append(members, shard.Member{ShardID: id})
	}
	for id := range m.upstream {
		members = append(members, shard.Member{ShardID: id})
	}
	for p, owners := range shard.Assign(shard.RoundRobin, members, mixedPartitions, mixedReplicas, "db") {
		for _, id := range owners {
			if held := m.upstream[id]; held != nil {
				held[p] = true
			}
		}
	}
}

// check fails the test if a partition has no holder.
func (m *mixedCluster) check() {
	m.t.Helper()
	if !m.serves {
		return
	}
	var holders [][]bool
	for _, h := range m.nodes {
		holders = append(holders, h.held)
	}
	if m.first == shard.RoundRobin {
		holders = slices.AppendSeq(holders, maps.Values(m.upstream))
	}
	for p := range mixedPartitions {
		if !slices.ContainsFunc(holders, func(held []bool) bool { return held[p] }) {
			m.t.Fatalf("nobody of %d nodes and %d of upstream holds partition %d, by the rule %s",
				len(m.nodes), len(m.upstream), p, m.first)
		}
	}
}
