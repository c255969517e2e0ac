//go:build integration

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sequins/test/process"
)

// TestLateZooKeeper starts five nodes that wait only a little for each other and
// choose their shard ids, and then ZooKeeper: they divide the data among five. A
// node that replaces one of them takes its place. The nodes have seconds to come to
// ZooKeeper together, so that this test runs alone.
func TestLateZooKeeper(t *testing.T) {
	z := startZookeeper(t, 1)
	z.killAll(t)
	c := newCluster(t, z, settings{data: dataset{keys: 1000, partitions: 20}, members: 5, replication: 2,
		sharding: []string{`shard_id = ""`, "min_nodes = 0", `time_to_converge = "100ms"`}})
	version := versionName(1)
	c.publish(t, version)
	for _, m := range c.members {
		m.config.Sections = m.sections()
		m.node = process.Launch(t, m.config)
		m.up = true
	}
	for _, m := range c.members {
		m.node.WaitLog(t, "waiting_for=\"ZooKeeper")
	}
	z.restartAll(t)
	for _, m := range c.members {
		m.waitReady(t)
	}
	c.checkNumbered(t, version)

	dead := c.members[3]
	number := dead.shardID(t)
	dead.terminate(t)
	c.members = slices.Delete(c.members, 3, 4)
	fresh := c.add(t, `time_to_converge = "1s"`)
	fresh.start(t)
	fresh.waitReady(t)
	if got := fresh.shardID(t); got != number {
		t.Errorf("it replaces %s, and is %s", number, got)
	}
	fresh.terminate(t)
	fresh.start(t)
	fresh.waitReady(t)
	if got := fresh.shardID(t); got != number {
		t.Errorf("it was %s, and is %s after a restart", number, got)
	}
	c.checkNumbered(t, version)
}

// shardID returns the shard id in a member's status.
func (m *member) shardID(t testing.TB) string {
	t.Helper()
	return m.node.Get(t, "/healthz").Header.Get("X-Sequins-Shard-ID")
}

// checkNumbered waits until the members have the shard ids 1, 2 and so on, and hold the partitions
// that the formula assigns to them.
func (c *cluster) checkNumbered(t testing.TB, version string) {
	t.Helper()
	var want, got []string
	for i, m := range c.members {
		want, got = append(want, fmt.Sprint(i+1)), append(got, m.shardID(t))
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Fatalf("the shard ids are %s", strings.Join(got, " "))
	}
	held := roundRobin(want, c.data.partitions, c.replication)
	for _, m := range c.members {
		m.waitHeld(t, version, held[m.shardID(t)])
	}
}
