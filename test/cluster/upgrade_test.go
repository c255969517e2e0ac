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
// nemesis causes faults, and package checker checks the recorded answers.
func TestUpgrades(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	t.Logf("to see the same faults again: go test ./test/cluster -run %s -args -seed %d", t.Name(), *seed)
	z := startZookeeper(t, 3)
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 16}, members: 5, replication: 2})
	c.begin(t, versionName(1))
	n := &nemesis{t: t, c: c, look: z.look(t), version: 1, rng: rand.New(rand.NewPCG(*seed, 0))}
	c.waitWhole(t, n.look, versionName(1))
	n.r = record(t, c, 2, versionName(1))
	defer n.r.judge(t, "history-upgrades")

	for sequence := 0; n.version < *upgrades; sequence++ {
		n.sequence(sequence%3 == 2, 3)
	}
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
