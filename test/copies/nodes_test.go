//go:build integration

package copies

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/harness"
	"sequins/test/process"
)

// TestNodes tests clusters, which share a ZooKeeper.
func TestNodes(t *testing.T) {
	t.Parallel()
	zookeeper := harness.Start(t).Do(t, "zk start n=1")["connect"]
	for name, test := range map[string]func(t *testing.T, zookeeper string){"own copies": testOwnCopies, "pause": testPause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, zookeeper)
		})
	}
}

// cluster starts a node for each source, all of which have version 1, and a reader of each.
func cluster(t testing.TB, zookeeper, name string, v version, sharding string, sources ...string) (scenes []*scene) {
	t.Helper()
	var nodes []*process.Node
	for i, source := range sources {
		nodes = append(nodes, process.Launch(t, configure(t, source, fmt.Sprintf("[sharding]\nenabled = true\ncluster_name = %q\n"+
			"advertised_hostname = \"127.0.0.1\"\nshard_id = \"%d\"\nmin_nodes = %d\ntime_to_converge = \"500ms\"\nproxy_timeout = \"20s\"\nproxy_stage_timeout = \"3s\"\n%s\n[zk]\nservers = [%q]\n",
			name, i, len(sources), sharding, zookeeper))))
	}
	for _, n := range nodes {
		n.WaitCurrent(t, db, "1")
		s := &scene{TB: t, node: n, reader: read(t, n, db, v.keys()), old: v}
		n.WaitFor(t, "version 1 is read", func() bool { return s.whole(1) })
		scenes = append(scenes, s)
	}
	return scenes
}

// testOwnCopies has two nodes whose sources are copies of the same files with other times, which then change again. Nothing is loaded
// again, and nothing is wrong.
func testOwnCopies(t *testing.T, zookeeper string) {
	v := version{generation: 1, parts: 4, size: 4 << 10}
	root := t.TempDir()
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	v.write(t, filepath.Join(a, db, "1"))
	run(t, tool(t, "cp", "-r", a, b)) // with the times of now
	scenes := cluster(process.Recap(t), zookeeper, "own", v, "replication = 2", a, b)
	run(t, tool(t, "sh", "-c", `touch "$1"/*/1/* && touch -d 2020-01-01 "$2"/*/1/*`, "sh", a, b))
	<-time.After(4 * settle) // at least two looks at the source
	for _, s := range scenes {
		s.judge(false)
		s.quiet()
		if n := strings.Count(s.node.Log(), "load started"); n > 1 {
			t.Errorf("%s has loaded version 1 %d times", s.node.Addr, n)
		}
	}
}

// testPause has three nodes of one source, to which a writer without a marker that pauses for longer than settle writes.
func testPause(t *testing.T, zookeeper string) {
	v := version{generation: 1, parts: 6, size: 4 << 10}
	root := t.TempDir()
	source := filepath.Join(root, "source")
	v.write(t, filepath.Join(source, db, "1"))
	scenes := cluster(process.Recap(t), zookeeper, "pause", v, "replication = 2\nmin_replication = 1", source, source, source)
	d := disk{scene: scenes[0], from: v.next().write(t, filepath.Join(root, "2")), to: filepath.Join(source, db, "2")}
	names := d.names()
	d.inOrder("", names[:3]...)
	for _, s := range scenes {
		s.node.WaitFor(t, "a part of version 2 is served", func() bool { return s.partial(2) })
	}
	d.inOrder("", names[3:]...)
	for _, s := range scenes {
		s.mark("the last file is there")
		s.waitWhole(2)
	}
	said := ""
	for _, s := range scenes {
		s.judge(true)
		said += s.node.Log()
	}
	if len(complaint.FindAllString(said, -1)) == 0 {
		t.Error("no node has said that what is served differs from the source")
	}
}
