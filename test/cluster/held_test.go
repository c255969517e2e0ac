//go:build integration

package cluster

import (
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sequins/reads/diff"
	"sequins/test/process"
)

// waitHeld waits until all members that run hold a version.
func (c *cluster) waitHeld(t testing.TB, version string) {
	t.Helper()
	for _, m := range c.live() {
		m.node.WaitFor(t, m.name+" holds "+version, func() bool { return m.node.Health(t)[db][version].State == "HELD" })
	}
}

// TestHeld publishes versions that lack 60 % of the keys, while clients read and members are killed, restarted, paused
// and cut off: all members hold them, and no client ever reads one. A good version is served meanwhile. A held one that is
// approved is served by all within ten seconds.
func TestHeld(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	t.Logf("to see the same faults again: go test ./test/cluster -run %s -args -seed %d", t.Name(), *seed)
	z := startZookeeper(t, 3)
	// With one replica a member could switch alone.
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 8}, members: 5, replication: 2, sharding: []string{"min_replication = 1"},
		sections: "[gate]\nmax_shrink = 0.5\nmax_missing = 0.5\n"})
	c.begin(t, versionName(1))
	n := &nemesis{t: t, c: c, look: z.look(t), version: 1, rng: rand.New(rand.NewPCG(*seed, 3))}
	c.waitWhole(t, n.look, versionName(1))
	n.r = record(t, c, versionName(1))
	n.recover() // with min_replication = 1, members serve before they know all replicas
	judged := false
	defer func() {
		if !judged {
			n.r.judge(t, "history-held")
		}
	}()

	n.publishHalf(3)
	n.publish()
	n.calm()
	n.recover()
	n.publishHalf(2)
	judged = true
	n.r.judge(t, "history-held")
	c.checkDiff(t, c.members[0], versionName(n.version-1), versionName(n.version))
	c.approve(t, versionName(n.version))
}

// checkDiff has a member compare the version that is served with one that is held, over all nodes, by partition.
func (c *cluster) checkDiff(t testing.TB, m *member, served, held string) {
	t.Helper()
	out, err := exec.Command(process.Binary(t), "diff", db, served, held, "--json", "--server", m.addr()).Output()
	var r diff.Report
	if jerr := json.Unmarshal(out, &r); jerr != nil || err != nil {
		t.Fatalf("diff: %v, %v: %s", err, jerr, out)
	}
	half := dataset{keys: c.data.keys * 4 / 10, partitions: c.data.partitions}
	want := make([]diff.Counts, c.data.partitions)
	for i := range c.data.keys {
		key := c.data.key(i)
		w := &want[c.data.partition(key)]
		_, before := c.data.value(key, served)
		_, after := half.value(key, held)
		switch {
		case before && after:
			w.Changed++
		case before:
			w.Removed++
		case after:
			w.Added++
		}
	}
	if len(r.Partitions) != c.data.partitions {
		t.Errorf("%d partitions differ, %d are unknown, of %d", len(r.Partitions), len(r.Unknown), c.data.partitions)
	}
	for _, row := range r.Partitions {
		if w := want[row.Partition]; row.Added != w.Added || row.Removed != w.Removed || row.Changed != w.Changed {
			t.Errorf("partition %d: %+v, want %+v", row.Partition, row.Counts, w)
		}
	}
}

// publishHalf publishes a version with 40 % of the keys, while faults of a number of rounds come and go. In the history it is
// not published: who reads it reads what does not exist.
func (n *nemesis) publishHalf(rounds int) {
	n.t.Helper()
	n.version++
	half := dataset{keys: n.c.data.keys * 4 / 10, partitions: n.c.data.partitions}
	for i := range rounds {
		faults := []fault{n.zookeeperFault(), n.memberFault(n.pick())}
		for _, f := range faults {
			n.say("do: " + f.name)
			f.do()
			n.wait(600 * time.Millisecond)
		}
		if i == 0 {
			n.say("publish half of " + versionName(n.version))
			half.publish(n.t, n.c.source, versionName(n.version))
		}
		n.wait(2 * sessionTimeout)
		for _, f := range faults {
			n.say("undo: " + f.name)
			f.undo()
			n.wait(600 * time.Millisecond)
		}
		n.recover()
	}
	n.c.waitHeld(n.t, versionName(n.version))
	m := n.pick()
	n.say("restart " + m.name + " while the version is held")
	n.kill(m)
	n.start(m)
	n.c.waitHeld(n.t, versionName(n.version))
	n.recover()
}

// approve approves a version by the command, which waits for all members.
func (c *cluster) approve(t testing.TB, version string) {
	t.Helper()
	began := time.Now()
	out, err := exec.Command(process.Binary(t), "approve", db, version, "--source", c.source, "--wait", "--server", c.members[0].addr()).CombinedOutput()
	if err != nil {
		t.Fatalf("approve: %v: %s", err, out)
	}
	took := time.Since(began)
	t.Logf("all members serve the approved version after %v", took.Round(time.Millisecond))
	for _, m := range c.members {
		if !strings.Contains(string(out), m.addr()+" serves "+version+"\n") {
			t.Errorf("the command does not say that %s serves %s: %s", m.addr(), version, out)
		}
	}
	c.waitServed(t, version)
}
