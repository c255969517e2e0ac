//go:build integration

package cluster

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestSecondVersionOfNewDatabase: two members have the first version of a new database, which the third one leaves for the
// second version. No member serves anything then, and with gates all of them still get to the second version.
func TestSecondVersionOfNewDatabase(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 500, partitions: 4}, members: 3, replication: 2,
		extra: "version_remove_timeout = \"1s\"\n", sections: "[gate]\nmin_records = 1\n"})
	c.members[1].config.Extra += "throttle_loads = \"10ms\"\n"
	c.startAll(t)
	c.publish(t, versionName(1))
	c.members[0].node.WaitLog(t, "load finished")
	c.members[2].node.WaitLog(t, "load finished")
	c.members[1].node.WaitLog(t, "load started")
	c.publish(t, versionName(2))
	c.waitServed(t, versionName(2))
}

// TestMembersBehindHeld: four versions are held. A member that has lost its disk, and then a cluster of which all members have,
// find the good version before them.
func TestMembersBehindHeld(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 500, partitions: 4}, members: 3, replication: 2, sections: "[gate]\nmin_records = 400\n"})
	c.begin(t, versionName(1))
	half := dataset{keys: 200, partitions: 4}
	for version := 2; version <= 5; version++ {
		half.publish(t, c.source, versionName(version))
		c.waitHeld(t, versionName(version))
	}
	empty := func(m *member) {
		m.kill()
		expect.NoError(t, os.RemoveAll(m.config.Store))
	}
	empty(c.members[1])
	c.members[1].start(t)
	c.waitServed(t, versionName(1))
	for _, m := range c.members {
		empty(m)
	}
	c.startAll(t)
	c.waitServed(t, versionName(1))
}

// TestJoinBehindHeld: four versions are held by a rule that compares them with the one that is served. A member that has
// lost its disk serves that version and none of the held ones, of which the others have removed all but the newest. Nor does a rollback from a
// later version lead to one of them.
func TestJoinBehindHeld(tt *testing.T) {
	tt.Parallel()
	for replication := 2; replication <= 3; replication++ {
		tt.Run(fmt.Sprintf("replication %d", replication), func(tt *testing.T) {
			t := process.Recap(tt)
			z := sharedZookeeper(t)
			c := newCluster(t, z, settings{data: dataset{keys: 500, partitions: 4}, members: 3, replication: replication,
				sharding: []string{"min_replication = 1"}, sections: "[gate]\nmax_shrink = 0.5\n"})
			c.begin(t, versionName(1))
			half := dataset{keys: 100, partitions: 4}
			for version := 2; version <= 5; version++ {
				half.publish(t, c.source, versionName(version))
				c.waitHeld(t, versionName(version))
			}
			m := c.members[1]
			m.kill()
			expect.NoError(t, os.RemoveAll(m.config.Store))
			began := time.Now()
			m.start(t)
			m.node.WaitCurrent(t, db, versionName(1))
			t.Logf("it serves again after %v", time.Since(began).Round(time.Millisecond))
			c.waitHeld(t, versionName(5))
			c.publish(t, versionName(6))
			c.waitServed(t, versionName(6))
			c.pin(t, `exclude = ["`+versionName(6)+`"]`)
			c.waitServed(t, versionName(1))
			log := m.node.Log()
			for version := 2; version <= 5; version++ {
				for line := range strings.Lines(log) {
					if strings.Contains(line, "version active") && strings.Contains(line, versionName(version)) {
						t.Errorf("a held version was served: %s", line)
					}
				}
			}
		})
	}
}
