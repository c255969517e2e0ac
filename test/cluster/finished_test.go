//go:build integration

package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sequins/test/process"
)

// TestFinishedBlocks has three nodes with a gate switch from a version of files to one of finished blocks and back. They
// agree on its plan, each copies its own partitions, and every node answers every key.
func TestFinishedBlocks(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 6}, members: 3, replication: 2, extra: "keep_versions = 2\n[gate]\nmin_records = 100\nmax_shrink = 0.5\nmax_missing = 0.5\n"})
	versions := []string{versionName(1), versionName(2), versionName(3)}
	c.begin(t, versions[0])
	jobs := t.TempDir()
	c.data.publish(t, jobs, versions[1])
	cmd := exec.Command(process.Binary(t), "build", filepath.Join(jobs, db, versions[1]), filepath.Join(c.source, db, versions[1]))
	cmd.Env = append(os.Environ(), "SEQUINS_SETTLE=0s")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c.waitServed(t, versions[1])
	held := roundRobin(c.names(), c.data.partitions, c.replication)
	testEveryKey(t, c, versions[1], held)
	c.waitWhole(t, z.look(t), versions[1])
	c.members[0].terminate(t) // its blocks are opened again
	c.members[0].start(t)
	c.members[0].node.WaitCurrent(t, db, versions[1])
	testEveryKey(t, c, versions[1], held)
	c.publish(t, versions[2])
	c.waitServed(t, versions[2])
	testEveryKey(t, c, versions[2], held)
}
