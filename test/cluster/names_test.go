//go:build integration

package cluster

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"sequins/reads/diff"
	"sequins/test/process"
)

// TestPunctuatedNames has three nodes share versions whose names have all characters of names. Each node answers every
// key, most of them from others, reads in order and compares the versions.
func TestPunctuatedNames(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 6}, members: 3, replication: 1, extra: "keep_versions = 2\n"})
	const rest = "=2026-01-31T10:00:00+01:00,a@b"
	versions := []string{versionName(1) + rest, versionName(2) + rest}
	c.begin(t, versions[0])
	c.publish(t, versions[1])
	c.waitServed(t, versions[1])
	c.waitWhole(t, z.look(t), versions[1])
	held := roundRobin(c.names(), c.data.partitions, c.replication)
	testPeerRequests(t, c, versions[1], held)
	testEveryKey(t, c, versions[1], held)
	for _, m := range c.members {
		r := m.node.Get(t, "/"+db+"?keys_only")
		if n := strings.Count(string(r.Body), `"key"`); r.Version() != versions[1] || n != len(c.data.sorted(versions[1])) {
			t.Errorf("%s: %d keys in order, of %s", m.name, n, r.Version())
		}
		cmd := exec.Command(process.Binary(t), "diff", db, versions[0], versions[1], "--server", m.addr(), "--json")
		out, err := cmd.CombinedOutput()
		var report diff.Report
		if err != nil || json.Unmarshal(out, &report) != nil || report.Compared != c.data.partitions || report.Changed == 0 {
			t.Errorf("%s: diff: %v: %s", m.name, err, out)
		}
	}
}
