//go:build integration

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"sequins/test/expect"
)

// writer returns a function that puts files of a version into the source, one after the other.
func (c *cluster) writer(t testing.TB, version string) func(files ...string) {
	away, dir := t.TempDir(), filepath.Join(c.source, db, version)
	c.data.publish(t, away, version)
	return func(files ...string) {
		t.Helper()
		err := os.MkdirAll(dir, 0o755)
		for _, name := range files {
			data, rerr := os.ReadFile(filepath.Join(away, db, version, name))
			temp := filepath.Join(dir, "."+name)
			err = errors.Join(err, rerr, os.WriteFile(temp, data, 0o644), os.Rename(temp, filepath.Join(dir, name)))
		}
		expect.NoError(t, err)
	}
}

// TestPlansOfActiveNodes: three nodes are active by different files of one version, and none by those that the source has
// in the end. When they meet, all of them load those, and go on answering meanwhile.
func TestPlansOfActiveNodes(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 500, partitions: 4}, members: 3, replication: 2,
		sharding: []string{"min_nodes = 0", "min_replication = 1"}})
	version := versionName(1)
	write := c.writer(t, version)
	for i, m := range c.members {
		m.config.Extra = "refresh_period = \"1h\"\nsettle = \"300ms\"\n"
		write(fmt.Sprintf("part-r-%05d", i))
		m.start(t)
		m.node.WaitCurrent(t, db, version)
		m.terminate(t)
	}
	write("part-r-00003")
	c.startAll(t)
	for _, m := range c.members {
		m.node.WaitLog(t, "instead_of="+version)
	}
	c.checkWhole(t, version)
	for _, m := range c.members {
		m.terminate(t)
	}
	c.startAll(t)
	c.checkWhole(t, version)
}

// TestPlansThatDiffer: of two nodes one has loaded a version without a marker while its job paused, and the other has
// looked at it later. The first loads it again, so that both switch to all of it.
func TestPlansThatDiffer(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 500, partitions: 3}, members: 2, replication: 1})
	early, late := c.members[0], c.members[1]
	early.config.Extra = "refresh_period = \"300ms\"\nsettle = \"500ms\"\n"
	late.config.Extra = "refresh_period = \"0s\"\nsettle = \"500ms\"\n" // it looks when it is told to
	first, second := versionName(1), versionName(2)
	c.publish(t, first)
	expect.NoError(t, os.Remove(filepath.Join(c.source, db, first, "_SUCCESS")))
	c.startAll(t)
	c.waitServed(t, first)

	write := c.writer(t, second)
	write("part-r-00000", "part-r-00001")
	early.node.WaitFor(t, "the early node has loaded two files", func() bool { return len(early.holds(t, second)) > 0 })
	if got := early.current(t); got != first {
		t.Fatalf("the early node serves %s", got)
	}
	write("part-r-00002")
	late.node.Signal(t, syscall.SIGHUP)
	c.waitServed(t, second)
	c.waitWhole(t, z.look(t), second)
	c.checkWhole(t, second)
}

// TestReplacedByEqualSizes: the files of a version that is served are replaced by files of the same names and sizes, and a node loses its disk. It
// loads the new files, and then all nodes do, although their plans are the same.
func TestReplacedByEqualSizes(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 500, partitions: 6}, members: 3, replication: 2})
	version := versionName(1)
	c.publish(t, version)
	rewrite := func(old, now string) {
		for p := range c.data.partitions {
			name := filepath.Join(c.source, db, version, fmt.Sprintf("part-r-%05d", p))
			data, err := os.ReadFile(name)
			changed := bytes.ReplaceAll(data, []byte(old), []byte(now))
			if bytes.Equal(changed, data) {
				t.Fatalf("%s has no %q", name, old)
			}
			if err = errors.Join(err, os.WriteFile(name, changed, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	rewrite(version+"/", "other/")
	c.startAll(t)
	c.waitServed(t, version)
	c.waitWhole(t, z.look(t), version)
	rewrite("other/", version+"/")
	lost := c.members[2]
	lost.kill()
	expect.NoError(t, os.RemoveAll(lost.config.Store))
	lost.start(t)
	for _, m := range c.members[:2] {
		m.node.WaitLog(t, "instead_of="+version)
	}
	lost.node.WaitCurrent(t, db, version)
	c.waitWhole(t, z.look(t), version)
	c.checkWhole(t, version)
}
