//go:build integration

package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/test/process"
)

// TestForgotten cuts all nodes but one off from ZooKeeper, until it has forgotten
// them. The one that is left, and sees them go, goes on asking them.
func TestForgotten(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 16}, members: 4, replication: 2})
	version := versionName(1)
	c.begin(t, version)
	l := z.look(t)
	c.waitWhole(t, l, version)
	loaded := c.loaded(t)
	r := record(t, c, version)
	defer r.judge(t, "history-forgotten")

	for _, m := range c.members[1:] {
		m.link.hold(t)
	}
	nodes := "/" + c.name + "/v1/nodes"
	process.Eventually(t, "sessions have expired", func() bool { return len(l.names(t, nodes)) == 1 })
	process.Eventually(t, "the one that is left has heard of it", func() bool {
		return strings.Count(c.members[0].node.Log(), "node has left") == 3
	})
	time.Sleep(time.Second) // for the clients to ask
	for _, m := range c.members[1:] {
		m.link.release()
	}
	c.waitWhole(t, l, version)
	if after := c.loaded(t); !maps.Equal(after, loaded) {
		t.Errorf("records loaded before %v, after %v", loaded, after)
	}
}

// TestOutage takes all of ZooKeeper away, and gives it back when it has forgotten
// all sessions. Nobody who reads may notice, and nothing is loaded again.
func TestOutage(t *testing.T) {
	t.Parallel()
	z := startZookeeper(t, 3)
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 16}, members: 5, replication: 2})
	version := versionName(1)
	c.begin(t, version)
	l := z.look(t)
	c.waitWhole(t, l, version)
	before := l.owned(t, "/"+c.name+"/v1")
	loaded := c.loaded(t)
	r := record(t, c, version)
	defer r.judge(t, "history-outage")

	z.killAll(t)
	time.Sleep(*outage) // it is the length that matters
	for _, m := range c.members {
		m.link.refuse() // a session lives on if its client comes back in time after a restart
	}
	z.restartAll(t)
	process.Eventually(t, "every session has expired", func() bool { return len(l.owned(t, "/"+c.name+"/v1")) == 0 })
	for _, m := range c.members {
		m.link.allow(t)
	}
	process.Eventually(t, "everything is published again", func() bool {
		after := l.owned(t, "/"+c.name+"/v1")
		return slices.Equal(slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	})
	if after := c.loaded(t); !maps.Equal(after, loaded) {
		t.Errorf("records loaded before %v, after %v", loaded, after)
	}
	t.Run("and upgrades go on", func(t *testing.T) {
		r.publish(t, versionName(2))
		c.waitServed(t, versionName(2))
	})
}

// loaded is how many records each member has read from the source.
func (c *cluster) loaded(t testing.TB) map[string]string {
	t.Helper()
	loaded := map[string]string{}
	for _, m := range c.members {
		loaded[m.name] = m.metric(t, `sequins_load_records_total{db="db"}`)
	}
	return loaded
}

// metric is a sample in the exposition of metrics.
func (m *member) metric(t testing.TB, name string) string {
	t.Helper()
	for line := range strings.Lines(m.node.Metrics(t)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("%s has no metric %s", m.name, name)
	return ""
}
