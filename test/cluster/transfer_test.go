//go:build integration

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sequins/test/expect"
)

// number is a metric as a number, 0 if nothing was counted yet.
func (m *member) number(t testing.TB, name string) float64 {
	t.Helper()
	for line := range strings.Lines(m.node.Metrics(t)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			expect.NoError(t, err)
			return v
		}
	}
	return 0
}

// total is the sum of a metric of the db over all members that run.
func (c *cluster) total(t testing.TB, name string) (sum float64) {
	t.Helper()
	for _, m := range c.live() {
		sum += m.number(t, fmt.Sprintf("%s{db=%q}", name, db))
	}
	return sum
}

var finished = regexp.MustCompile(`msg="load finished".* version=(\S+) files=(\d+)/\d+ bytes=(\d+)/`)

// loadedOf returns how many files and bytes of a version a member has loaded, as it has logged. What is read to plan a version is not in it.
func (m *member) loadedOf(t testing.TB, version string) (files, bytes int) {
	t.Helper()
	for _, found := range finished.FindAllStringSubmatch(m.node.Log(), -1) {
		f, err := strconv.Atoi(found[2])
		b, berr := strconv.Atoi(found[3])
		if err = errors.Join(err, berr); err != nil {
			t.Fatal(err)
		}
		if found[1] == version {
			files, bytes = files+f, bytes+b
		}
	}
	return files, bytes
}

// TestReadOnce publishes versions for ten nodes with three replicas of each partition: each partition is read from the source once, and
// copied from another node twice.
func TestReadOnce(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 6000, partitions: 30, pad: 200}, members: 10, replication: 3})
	c.startAll(t)
	for n := 1; n <= 2; n++ {
		v := versionName(n)
		blocks := c.total(t, "sequins_peer_blocks_total")
		c.publish(t, v)
		c.waitServed(t, v)
		c.waitWhole(t, z.look(t), v)
		read, copied := 0, c.total(t, "sequins_peer_blocks_total")-blocks
		for _, m := range c.members {
			files, _ := m.loadedOf(t, v)
			read += files
		}
		if t.Logf("%s: %d files read, %.0f blocks copied", v, read, copied); read != 30 {
			t.Errorf("%s: %d files were read from a source of 30", v, read)
		}
		if copied != 60 {
			t.Errorf("%s: %.0f blocks were copied, want 60", v, copied)
		}
	}
	if refused := c.total(t, "sequins_peer_blocks_refused_total"); refused > 0 {
		t.Errorf("%.0f copies were refused", refused)
	}
	testEveryKey(t, c, versionName(2), roundRobin(c.names(), c.data.partitions, c.replication))
}

// leaveSource moves the source away.
func (c *cluster) leaveSource(t *testing.T) {
	t.Helper()
	expect.NoError(t, os.Rename(c.source, c.source+".away"))
}

// TestFillWithoutSource adds a node with an empty store while the source is gone: it gets its share from the others, and keeps it when the
// source comes back.
func TestFillWithoutSource(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 5000, partitions: 8}, members: 3, replication: 2})
	v := versionName(1)
	c.begin(t, v)
	c.waitWhole(t, z.look(t), v)
	c.leaveSource(t)
	m := c.add(t)
	m.start(t)
	m.node.WaitCurrent(t, db, v)
	m.waitHeld(t, v, roundRobin(c.names(), c.data.partitions, c.replication)[m.name])
	m.waitReady(t)
	expect.NoError(t, os.Rename(c.source+".away", c.source))
	c.publish(t, versionName(2))
	c.waitServed(t, versionName(2))
	m.node.WaitFor(t, "it reads the source again", func() bool { return m.number(t, fmt.Sprintf("sequins_load_bytes_total{db=%q}", db)) > 0 })
	c.waitWhole(t, z.look(t), versionName(2))
	testEveryKey(t, c, versionName(2), roundRobin(c.names(), c.data.partitions, c.replication))
}

// TestGiverFails kills or stops a node while a new one copies from it, with the source away: the new one gets everything from the other.
func TestGiverFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, m *member){
		"killed":  func(_ *testing.T, m *member) { m.kill() },
		"stopped": func(t *testing.T, m *member) { m.pause(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z := sharedZookeeper(t)
			c := newCluster(t, z, settings{data: dataset{keys: 6000, partitions: 6, pad: 8000}, members: 2, replication: 3,
				sharding: []string{"min_replication = 1"}, sections: "[load]\npeer_bandwidth_mb_per_second = 1\n"})
			v := versionName(1)
			c.begin(t, v)
			for _, m := range c.members {
				m.waitHeld(t, v, []int{0, 1, 2, 3, 4, 5})
			}
			c.leaveSource(t)
			m := c.add(t)
			m.launch(t)
			m.waitLive(t)
			var giver *member
			m.node.WaitFor(t, "a block is being copied", func() bool {
				i := slices.IndexFunc(c.members[:2], func(m *member) bool { return m.number(t, `sequins_peer_streams{direction="given"}`) > 0 })
				if i >= 0 {
					giver = c.members[i]
				}
				return i >= 0
			})
			fail(t, giver)
			m.waitHeld(t, v, []int{0, 1, 2, 3, 4, 5})
			for i := range 300 {
				key := c.data.key(i * 20)
				want, there := c.data.value(key, v)
				if r := m.node.Get(t, "/"+db+"/"+key); there && (r.Code != 200 || string(r.Body) != want) {
					t.Fatalf("%s: %d with %d bytes", key, r.Code, len(r.Body))
				}
			}
			if giver.paused {
				giver.resume(t)
			}
		})
	}
}

// TestUnchangedInCluster publishes a version in which one of 20 partitions has changed. All nodes link the others, also those that they
// have copied from other nodes before.
func TestUnchangedInCluster(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	data := dataset{keys: 4000, partitions: 20}
	c := newCluster(t, z, settings{data: data, members: 3, replication: 3})
	c.begin(t, versionName(1))
	c.waitWhole(t, z.look(t), versionName(1))
	for _, m := range c.members {
		m.node.WaitLog(t, "load finished")
	}
	next, temp, fresh := filepath.Join(c.source, db, versionName(2)), filepath.Join(c.source, db, "_temp"), t.TempDir()
	data.publish(t, fresh, versionName(2))
	expect.NoError(t, os.CopyFS(temp, os.DirFS(filepath.Join(c.source, db, versionName(1)))))
	changed, err := os.ReadFile(filepath.Join(fresh, db, versionName(2), "part-r-00007"))
	if err == nil {
		err = os.WriteFile(filepath.Join(temp, "part-r-00007"), changed, 0o644)
	}
	if err == nil {
		err = os.Rename(temp, next)
	}
	expect.NoError(t, err)
	c.waitServed(t, versionName(2))
	c.waitWhole(t, z.look(t), versionName(2))
	if n := c.total(t, "sequins_load_unchanged_partitions_total"); n != 3*19 {
		t.Errorf("%.0f partitions were linked, want 57", n)
	}
	for i := range 200 {
		key := data.key(i)
		version := versionName(1)
		if data.partition(key) == 7 {
			version = versionName(2)
		}
		want, found := data.value(key, version)
		for _, m := range c.members {
			r, err := m.node.TryGet("/" + db + "/" + key)
			if err != nil || found && string(r.Body) != want {
				t.Fatalf("%s of %s: %v, %.40q, want %.40q", key, m.name, err, r.Body, want)
			}
		}
	}
}
