//go:build integration

package cluster

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// bad is the data with too few keys for a gate.
func (d dataset) bad() dataset {
	d.keys = d.keys * 4 / 10
	return d
}

// hasHeld reports whether a member has said that it holds a version.
func (m *member) hasHeld(version string) bool {
	return process.LogHas(m.node.Log(), "version held", "version="+version+" ")
}

// TestNodeWithoutGateJoins adds a node without a gate to three that have one. A bad version that the three hold is not served by them, and by the
// fourth only if it has all of its partitions; the next version is served by all.
func TestNodeWithoutGateJoins(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	for _, replication := range []int{2, 4} {
		t.Run(fmt.Sprintf("replication %d", replication), func(tt *testing.T) {
			tt.Parallel()
			t := process.Recap(tt)
			c := newCluster(t, z, settings{data: dataset{keys: 500, partitions: 8}, members: 3, replication: replication,
				sharding: []string{"min_replication = 1"}, sections: "[gate]\nmax_shrink = 0.5\n"})
			good, bad, next := versionName(1), versionName(2), versionName(3)
			c.begin(t, good)
			odd := c.add(t)
			odd.startWith(t, "")
			odd.waitReady(t)
			odd.node.WaitFor(t, "it has partitions", func() bool { return len(odd.holds(t, good)) > 0 })
			clients := c.watchContents(t, func(version string) []dataset {
				if version == bad {
					return []dataset{c.data.bad()}
				}
				return []dataset{c.data}
			})
			c.data.bad().publish(t, c.source, bad)
			for _, m := range c.members[:3] {
				m.node.WaitFor(t, m.name+" holds "+bad, func() bool { return m.node.Health(t)[db][bad].State == "HELD" })
			}
			odd.node.WaitFor(t, "the node without a gate has loaded it", func() bool { return len(odd.holds(t, bad)) >= c.data.partitions/4 })
			if replication == 4 {
				odd.node.WaitFor(t, "a client has an answer of it", func() bool { return clients.last(odd) == bad })
			} else if got := odd.current(t); got != good {
				t.Errorf("the node without a gate serves %s", got)
			}
			c.publish(t, next)
			c.waitServed(t, next)
			clients.end(t)
			for name, seen := range clients.seen {
				want := []string{good, next}
				if name == odd.name && replication == 4 {
					want = []string{good, bad, next}
				}
				if !slices.Equal(seen, want) {
					t.Errorf("%s has answered from %v, want %v", name, seen, want)
				}
			}
		})
	}
}

// TestMinRecordsWithSlowNode stops the load of one of three nodes: the others know less than all records of the version, and wait. When the load
// goes on, all serve the version, which no node has ever held.
func TestMinRecordsWithSlowNode(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	z := sharedZookeeper(t)
	data := dataset{keys: 2000, partitions: 6}
	records := len(data.sorted(versionName(2)))
	c := newCluster(t, z, settings{data: data, members: 3, replication: 1, sections: fmt.Sprintf("[gate]\nmin_records = %d\n", records)})
	slow := c.members[1]
	slow.config.Extra += "throttle_loads = \"5ms\"\n" // long enough to stop it
	old, next := versionName(1), versionName(2)
	c.begin(t, old)
	clients := c.watchVersions(t)
	c.publish(t, next)
	goOn := slow.stopLoad(t, next)
	for _, m := range []*member{c.members[0], c.members[2]} {
		m.node.WaitFor(t, m.name+" has loaded its partitions", func() bool { return len(m.holds(t, next)) == 2 })
		m.node.WaitFor(t, m.name+" says what it waits for", func() bool {
			return strings.Contains(string(m.node.Get(t, "/").Body), "partitions are not known yet")
		})
	}
	if n := len(slow.holds(t, next)); n == 2 {
		t.Errorf("%s has loaded all of its partitions: this shows nothing", slow.name)
	}
	c.expectServes(t, old)
	goOn()
	c.waitServed(t, next)
	for _, m := range c.members {
		if m.hasHeld(next) {
			t.Errorf("%s has held the version for too few records", m.name)
		}
	}
	clients.finish(t, []string{old, next})
}

// TestGateReadsTheSourceOnce publishes a version for three nodes that all have all partitions and judge them: the source is read once.
func TestGateReadsTheSourceOnce(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 20_000, partitions: 12, pad: 200}, members: 3, replication: 3,
		sections: "[gate]\nmax_shrink = 0.5\nmax_missing = 0.5\nmin_records = 1000\n"})
	c.begin(t, versionName(1))
	c.waitWhole(t, z.look(t), versionName(1))
	for n := 2; n <= 3; n++ {
		version := versionName(n)
		c.publish(t, version)
		c.waitServed(t, version)
		c.waitWhole(t, z.look(t), version)
		size, got := sizeOf(t, filepath.Join(c.source, db, version)), 0
		for _, m := range c.members {
			_, bytes := m.loadedOf(t, version)
			got += bytes
		}
		if t.Logf("%s: %d bytes loaded of a version of %d", version, got, size); got < size || got > size+size/5 {
			t.Errorf("%s: %.2f times its size was loaded", version, float64(got)/float64(size))
		}
	}
}

// sizeOf is the size of all files below a directory.
func sizeOf(t testing.TB, dir string) (size int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += int(info.Size())
		}
		return err
	})
	expect.NoError(t, err)
	return size
}

// TestDiffOfHeldVersion compares a version that all nodes hold with the one that is served, of which each node has other partitions, through each of them.
func TestDiffOfHeldVersion(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 1000, partitions: 6}, members: 3, replication: 1, sections: "[gate]\nmax_shrink = 0.3\n"})
	good, bad := versionName(1), versionName(2)
	c.begin(t, good)
	c.data.bad().publish(t, c.source, bad)
	c.waitHeld(t, bad)
	for _, m := range c.members {
		if n := len(m.holds(t, bad)); n == 0 || n == c.data.partitions {
			t.Errorf("%s has %d partitions of the version: this shows nothing", m.name, n)
		}
		c.checkDiff(t, m, good, bad)
	}
	c.expectServes(t, good)
}

// TestGateMeasuresNewBlocks replaces the files of a served version by ones of the same names and sizes that lack a required key: they are not served. Files
// that have it are.
func TestGateMeasuresNewBlocks(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	z := sharedZookeeper(t)
	data := dataset{keys: 501, partitions: 4, tag: "-x"}
	key := data.key(500)
	c := newCluster(t, z, settings{data: data, members: 3, replication: 2, sections: fmt.Sprintf("[gate]\nrequired_keys = {%s = \"^v\"}\n", key)})
	version := versionName(1)
	c.begin(t, version)
	c.waitContent(t, c.members, data, version)
	lacking, repaired := data.tagged("-y").lacking(t, key), data.tagged("-z")
	clients := c.watchContents(t, func(string) []dataset { return []dataset{data, repaired} })
	lacking.rewrite(t, c.source, version)
	c.refresh(t)
	for _, m := range c.members {
		m.node.WaitFor(t, m.name+" holds the files without the key", func() bool { return m.hasHeld(version) })
	}
	c.checkWhole(t, version)
	repaired.rewrite(t, c.source, version)
	c.refresh(t)
	c.waitContent(t, c.members, repaired, version)
	clients.finish(t, []string{version})
}

// lacking returns the data with another key in the place of its last one, in the same partition and of the same length.
func (d dataset) lacking(t testing.TB, last string) dataset {
	t.Helper()
	for c := byte('a'); c <= 'z'; c++ {
		other := last[:len(last)-1] + string(c)
		if d.partition(other) == d.partition(last) {
			d.swap = swap{out: last, in: other}
			return d
		}
	}
	t.Fatal("no other key belongs into the partition")
	return d
}

// configure changes the sections of the configuration of the members that run, and of those that start later.
func (c *cluster) configure(t testing.TB, sections string) {
	t.Helper()
	old := c.settings.sections
	c.settings.sections = sections
	for _, m := range c.live() {
		conf, err := os.ReadFile(m.node.Conf)
		expect.NoError(t, err)
		text, found := strings.CutSuffix(strings.TrimSpace(string(conf)), strings.TrimSpace(old))
		if !found {
			t.Fatalf("the configuration does not end with %q: %s", old, conf)
		}
		expect.NoError(t, os.WriteFile(m.node.Conf, []byte(text+"\n"+sections), 0o644))
		m.node.Signal(t, syscall.SIGHUP)
	}
}

// TestGateSwitchedOnAfterALoss switches a gate on after one of four machines is lost: good versions go live in bounded time all the same, also if a
// node is killed as soon as it has switched.
func TestGateSwitchedOnAfterALoss(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	for replication := 1; replication <= 2; replication++ {
		t.Run(fmt.Sprintf("replication %d", replication), func(tt *testing.T) {
			tt.Parallel()
			t := process.Recap(tt)
			c := newCluster(t, z, settings{data: dataset{keys: 500, partitions: 8}, members: 4, replication: replication, extra: shortStay,
				sharding: []string{"min_replication = 1", `heal_after = "1s"`, "min_nodes = 0"}})
			c.begin(t, versionName(1))
			lost := c.members[3]
			lost.kill()
			expect.NoError(t, os.RemoveAll(lost.config.Store))
			c.configure(t, "[gate]\nmax_shrink = 0.5\nmax_missing = 0.5\nmin_records = 100\n")
			c.publish(t, versionName(2))
			c.waitServed(t, versionName(2))

			c.publish(t, versionName(3))
			var switched *member
			process.Eventually(t, "one node has switched", func() bool {
				i := slices.IndexFunc(c.members[:3], func(m *member) bool { return m.current(t) == versionName(3) })
				if i >= 0 {
					switched = c.members[i]
				}
				return i >= 0
			})
			switched.kill()
			c.waitServed(t, versionName(3))
			c.publish(t, versionName(4))
			c.waitServed(t, versionName(4))
			switched.start(t)
			switched.node.WaitCurrent(t, db, versionName(4))
			c.checkEach(t, c.live(), versionName(4))
		})
	}
}
