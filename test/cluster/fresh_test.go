//go:build integration

package cluster

import (
	"os"
	"testing"

	"sequins/test/process"
)

// TestSecondVersionOfNewDatabase: two members have the first version of a new database, which the third one leaves for the
// second version. No member serves anything then, and with gates all of them still get to the second version.
func TestSecondVersionOfNewDatabase(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	z := startZookeeper(t, 1)
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
	z := startZookeeper(t, 1)
	c := newCluster(t, z, settings{data: dataset{keys: 500, partitions: 4}, members: 3, replication: 2, sections: "[gate]\nmin_records = 400\n"})
	c.publish(t, versionName(1))
	c.startAll(t)
	c.waitServed(t, versionName(1))
	half := dataset{keys: 200, partitions: 4}
	for version := 2; version <= 5; version++ {
		half.publish(t, c.source, versionName(version))
		c.waitHeld(t, versionName(version))
	}
	empty := func(m *member) {
		m.kill()
		if err := os.RemoveAll(m.config.Store); err != nil {
			t.Fatal(err)
		}
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
