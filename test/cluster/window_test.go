//go:build integration

package cluster

import (
	"fmt"
	"testing"
	"time"
)

// TestWindow publishes a version hours before the window of three nodes: all of them wait. One that restarts without a window loads its
// partitions, and the others follow, whichever partitions they have: no cluster is left with one half on a version.
func TestWindow(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	begin := time.Now().UTC().Add(3 * time.Hour)
	window := fmt.Sprintf("[load]\nwindow = \"%s-%s UTC\"\n", begin.Format("15:04"), begin.Add(time.Hour).Format("15:04"))
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 6}, members: 3, replication: 1, sections: window})
	versions := []string{versionName(1), versionName(2)}
	c.begin(t, versions[0])
	c.publish(t, versions[1])
	for _, m := range c.members {
		m.node.WaitFor(t, m.name+" waits for its window", func() bool {
			return m.node.Health(t)[db][versions[1]].State == "AVAILABLE"
		})
	}
	free := c.members[2]
	free.terminate(t)
	c.settings.sections = ""
	free.start(t)
	c.waitServed(t, versions[1])
	c.waitWhole(t, z.look(t), versions[1])
	testEveryKey(t, c, versions[1], roundRobin(c.names(), c.data.partitions, c.replication))
	for _, m := range c.members[:2] {
		if got := len(m.node.Health(t)[db][versions[1]].Partitions); got != 2 {
			t.Errorf("%s holds %d partitions", m.name, got)
		}
	}
}
