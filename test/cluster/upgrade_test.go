//go:build integration

package cluster

import (
	"math/rand/v2"
	"testing"
	"time"

	"sequins/test/checker"
	"sequins/test/process"
)

// TestUpgrades is the main test: clients read continuously while versions are published and the
// nemesis causes faults, and package checker checks the recorded answers. Beside them read sessions of the Go client, whose
// reads fail only once the nemesis has been careless; none is wrong or returns to an older version.
func TestUpgrades(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	t.Logf("to see the same faults again: go test ./test/cluster -run %s -args -seed %d", t.Name(), *seed)
	z := startZookeeper(t, 3)
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 16}, members: 5, replication: 2})
	c.begin(t, versionName(1))
	n := &nemesis{t: t, c: c, look: z.look(t), version: 1, rng: rand.New(rand.NewPCG(*seed, 0))}
	c.waitWhole(t, n.look, versionName(1))
	n.r = record(t, c, versionName(1))
	defer n.r.judge(t, "history-upgrades")

	readers := c.startReaders(t, 20*time.Second, c.members)
	for sequence := 0; n.version < *upgrades; sequence++ {
		careless := sequence%3 == 2
		if careless {
			readers.lenient.Store(true)
		}
		n.sequence(careless, 3)
	}
	readers.finish()
	t.Logf("%d reads of the Go client, and %d that failed while the nemesis was careless", readers.reads.Load(), readers.failed.Load())
}

// sequence is some rounds, after which the cluster has to find its way back.
func (n *nemesis) sequence(careless bool, rounds int) {
	n.t.Helper()
	n.careless = careless
	begin := time.Now()
	if careless {
		n.r.note(checker.Unsafe, nil, "a careless sequence")
	}
	for range min(rounds, *upgrades-n.version) {
		n.round()
		if !careless {
			n.recover()
		}
	}
	n.calm()
	n.recover()
	n.t.Logf("careless %v, up to %s: %v", careless, versionName(n.version), time.Since(begin).Round(time.Millisecond))
}
