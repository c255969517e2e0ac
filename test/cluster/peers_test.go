//go:build integration

package cluster

import (
	"slices"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestBadPeers measures what one bad peer costs the requests that could go to it:
// of two replicas that a third node may ask, one hangs, is not to be reached, or
// is dead.
func TestBadPeers(t *testing.T) {
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{
		data: dataset{keys: 3000, partitions: 12}, members: 3, replication: 2,
	})
	version := versionName(1)
	c.begin(t, version)
	l := z.look(t)
	c.waitWhole(t, l, version)
	asker, bad := c.members[0], c.members[1]
	keys := c.onlyProxied(asker, version)

	// cost is the slowest request of a round. What a bad peer adds is in every round;
	// what a busy machine adds is not: the quietest of so many rounds counts.
	cost := func(rounds int, what string, do, undo func()) time.Duration {
		var slowest []time.Duration
		for range rounds {
			c.waitAsked(t, asker, bad, keys)
			do()
			slowest = append(slowest, c.slowest(t, asker, version, keys))
			undo()
			c.waitWhole(t, l, version)
		}
		d := slices.Min(slowest)
		t.Logf("%s: the slowest of %d requests takes %v", what, len(keys), d)
		return d
	}
	healthy := cost(7, "all is well", func() {}, func() {})
	dead := cost(5, "one peer is dead", bad.kill, func() { bad.start(t); bad.waitReady(t) })
	if dead-healthy > 5*time.Millisecond {
		t.Error("a peer that fails at once adds more than 5ms")
	}
	const slack = stageTimeout / 2 // of a busy machine: less than another stage
	hung := cost(3, "one peer hangs", func() { bad.pause(t) }, func() { bad.resume(t) })
	if hung-healthy > stageTimeout+slack {
		t.Errorf("a peer that hangs adds more than %v", stageTimeout)
	}
	lost := cost(3, "one peer is out of reach", func() { cut(t, asker.host, bad.host) }, func() { join(t, asker.host, bad.host) })
	if lost-healthy > stageTimeout+slack {
		t.Errorf("a peer that is out of reach adds more than %v", stageTimeout)
	}
}

// onlyProxied are some keys of each partition that a member does not hold.
func (c *cluster) onlyProxied(m *member, version string) []string {
	held := roundRobin(c.names(), c.data.partitions, c.replication)[m.name]
	var keys []string
	for i := 0; len(keys) < 40; i++ {
		key := c.data.key(i)
		if _, there := c.data.value(key, version); there && !slices.Contains(held, c.data.partition(key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// slowest asks a member for keys, one after the other, and returns the longest
// time that one took.
func (c *cluster) slowest(t *testing.T, m *member, version string, keys []string) (longest time.Duration) {
	t.Helper()
	client := m.node.Client()
	defer client.Close()
	if _, err := client.Get("/livez"); err != nil { // connects
		t.Fatal(err)
	}
	for _, key := range keys {
		begin := time.Now()
		expect.NoError(t, c.expect(client, m, key, version, nil))
		longest = max(longest, time.Since(begin))
	}
	return longest
}

// waitAsked waits until a member asks another one as often as any, over
// connections that are open by then.
func (c *cluster) waitAsked(t *testing.T, asker, asked *member, keys []string) {
	t.Helper()
	client := asker.node.Client()
	defer client.Close()
	process.Eventually(t, asker.name+" asks "+asked.name, func() bool {
		n := 0
		for _, key := range keys {
			r, err := client.Get("/" + db + "/" + key)
			expect.NoError(t, err)
			if r.Header.Get("X-Sequins-Proxied-To") == asked.addr() {
				n++
			}
		}
		return n >= len(keys)/8
	})
}

// TestStatusOfTheCluster asks one node for the status of all, also while one of
// them says nothing.
func TestStatusOfTheCluster(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{
		data: dataset{keys: 300, partitions: 12}, members: 3, replication: 2,
	})
	version := versionName(1)
	c.begin(t, version)
	c.waitWhole(t, z.look(t), version)
	held := roundRobin(c.names(), c.data.partitions, c.replication)
	for _, m := range c.members {
		process.Eventually(t, m.name+" shows all nodes", func() bool {
			v := m.status(t).DBs[db].Versions[version]
			whole := v.NumPartitions == c.data.partitions && v.Target == 2 && v.Histogram["2"] == c.data.partitions && len(v.Nodes) == 3
			for _, other := range c.members {
				n := v.Nodes[other.addr()]
				whole = whole && slices.Equal(n.Partitions, held[other.name]) && n.State == "ACTIVE" && n.ShardID == other.name
			}
			return whole
		})
	}
	asked, silent := c.members[0], c.members[1]
	silent.pause(t)
	process.Eventually(t, "the status says who does not answer", func() bool {
		begin := time.Now()
		s := asked.status(t)
		if took := time.Since(begin); took > 20*time.Second {
			t.Fatalf("beside a node that hangs, the status takes %v", took)
		}
		if s.Peers[c.members[2].addr()].Error != "" {
			t.Fatalf("%+v", s.Peers)
		}
		n := s.DBs[db].Versions[version].Nodes[c.members[2].addr()]
		return s.Peers[silent.addr()].Error != "" && slices.Equal(n.Partitions, held[c.members[2].name])
	})
	silent.resume(t)
}
