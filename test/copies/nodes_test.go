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

// TestOwnCopies has two nodes whose sources are copies of the same files with other times, one of which then changes its times. Nothing
// is loaded again, and nothing is wrong.
func TestOwnCopies(t *testing.T) {
	t.Parallel()
	v := version{generation: 1, parts: 4, size: 4 << 10}
	zookeeper := harness.Start(t).Do(t, "zk start n=1")["connect"]
	root := t.TempDir()
	first := v.write(t, filepath.Join(root, "a", db, "1"))
	second := filepath.Join(root, "b", db, "1")
	run(t, tool(t, "sh", "-c", `mkdir -p "$(dirname "$2")" && cp -r "$1" "$2"`, "sh", first, second)) // with the times of now
	var nodes []*process.Node
	for i, source := range []string{"a", "b"} {
		nodes = append(nodes, process.Launch(t, configure(t, filepath.Join(root, source), fmt.Sprintf("[sharding]\nenabled = true\ncluster_name = \"copies\"\n"+
			"advertised_hostname = \"127.0.0.1\"\nshard_id = \"%d\"\nreplication = 2\nmin_nodes = 2\ntime_to_converge = \"500ms\"\n[zk]\nservers = [%q]\n", i, zookeeper))))
	}
	var scenes []*scene
	for _, n := range nodes {
		n.WaitCurrent(t, db, "1")
		s := &scene{TB: t, node: n, reader: read(t, n, db, v.keys()), old: v}
		n.WaitFor(t, "version 1 is read", func() bool { return s.whole(1) })
		scenes = append(scenes, s)
	}
	run(t, tool(t, "sh", "-c", `touch "$1"/* && touch -d 2020-01-01 "$2"/*`, "sh", first, second))
	<-time.After(4 * settle) // at least two looks at the source
	for _, s := range scenes {
		s.judge(false)
		s.quiet()
		if n := strings.Count(s.node.Log(), "version loaded"); n > 1 {
			t.Errorf("%s has loaded %d times", s.node.Addr, n)
		}
	}
}
