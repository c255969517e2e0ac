//go:build integration

package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestReturnsAfterGoodThenTwoBad: while a node is away, a good version and two bad ones come. The node, with its disk or without, gets ready with the
// good one, and no client of it reads another or gets an error.
func TestReturnsAfterGoodThenTwoBad(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	for _, wiped := range []bool{false, true} {
		t.Run(fmt.Sprintf("wiped: %v", wiped), func(tt *testing.T) {
			tt.Parallel()
			t := process.Recap(tt)
			c := newCluster(t, z, settings{data: dataset{keys: 500, partitions: 8}, members: 3, replication: 2,
				sharding: []string{"min_replication = 1"}, sections: "[gate]\nmax_shrink = 0.5\n"})
			old, good := versionName(1), versionName(2)
			c.begin(t, old)
			away := c.members[2]
			away.terminate(t)
			c.publish(t, good)
			c.waitServed(t, good)
			for _, bad := range []string{versionName(3), versionName(4)} {
				c.data.bad().publish(t, c.source, bad)
				c.waitHeld(t, bad)
			}
			if wiped {
				expect.NoError(t, os.RemoveAll(away.config.Store))
			}
			clients := c.watchVersions(t)
			clients.watchStart(c, away)
			away.start(t)
			away.waitReady(t)
			away.node.WaitCurrent(t, db, good)
			c.waitHeld(t, versionName(4))
			c.checkWhole(t, good)
			next := versionName(5)
			c.publish(t, next)
			c.waitServed(t, next)
			clients.end(t)
			c.expectSeen(t, clients, old, good, next)
		})
	}
}

// expectSeen fails the test unless the clients of each member have seen versions in their order and no others. Only a member that was started
// since may have answered from the first one.
func (c *cluster) expectSeen(t testing.TB, w *watchers, old string, want ...string) {
	t.Helper()
	for _, m := range c.members {
		seen := w.seen[m.name]
		if m.starts > 1 && len(seen) > 0 && seen[0] == old {
			seen = seen[1:]
		}
		if !slices.Equal(seen, want) {
			t.Errorf("%s has answered from %v, want %v", m.name, w.seen[m.name], want)
		}
	}
}

// TestReturnsWhileNewerLoads: a node returns while the others serve a version that it has not seen and load a newer one, for long. It serves what
// they serve, and no client of it gets an error.
func TestReturnsWhileNewerLoads(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 300, partitions: 6}, members: 3, replication: 2, extra: "throttle_loads = \"5ms\"\n"})
	old, served, loading := versionName(1), versionName(2), versionName(3)
	c.begin(t, old)
	away := c.members[1]
	away.terminate(t)
	c.publish(t, served)
	c.waitServed(t, served)
	large := c.data
	large.keys = 20_000 // it loads for more than half a minute
	large.publish(t, c.source, loading)
	for _, m := range c.live() {
		m.node.WaitFor(t, m.name+" loads the newer version", func() bool { return m.node.Health(t)[db][loading].State == "BUILDING" })
	}
	clients := c.watchVersions(t)
	clients.watchStart(c, away)
	away.start(t)
	away.waitReady(t)
	away.node.WaitCurrent(t, db, served)
	for _, m := range c.members {
		if state := m.node.Health(t)[db][loading].State; m != away && state != "BUILDING" {
			t.Errorf("%s has the newer version in state %q: this shows nothing", m.name, state)
		}
	}
	c.checkWhole(t, served)
	clients.end(t)
	c.expectSeen(t, clients, old, served)
}

// TestReturnsWithoutItsDisk wipes the disk of a node that is away while a version is replaced in place: it comes back with the files that the source
// has, although others have blocks of both.
func TestReturnsWithoutItsDisk(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	z := sharedZookeeper(t)
	first := dataset{keys: 500, partitions: 6, tag: "-x"}
	c := newCluster(t, z, settings{data: first, members: 3, replication: 2, extra: "version_remove_timeout = \"1h\"\n"})
	version := versionName(1)
	c.begin(t, version)
	away := c.members[0]
	away.kill()
	second := first.tagged("-y")
	second.rewrite(t, c.source, version)
	c.refresh(t)
	c.waitContent(t, c.live(), second, version)
	expect.NoError(t, os.RemoveAll(away.config.Store))
	clients := c.watchContents(t, func(string) []dataset { return []dataset{second} })
	clients.watchStart(c, away)
	away.start(t)
	away.waitReady(t)
	c.waitContent(t, c.members, second, version)
	c.waitWhole(t, z.look(t), version)
	clients.finish(t, []string{version})
	if strings.Contains(away.node.Log(), "level=ERROR") {
		t.Errorf("%s has logged an error", away.name)
	}
}
