//go:build integration

package cluster

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestStartWithoutZooKeeper starts nodes again while ZooKeeper is away: they answer every key, also of blocks on other nodes, and change nothing. Then
// ZooKeeper comes back in several states.
func TestStartWithoutZooKeeper(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, c *cluster, z *zookeeper){
		"it comes back as it was": func(t *testing.T, c *cluster, z *zookeeper) { z.restartAll(t) },
		"it comes back empty": func(t *testing.T, c *cluster, z *zookeeper) {
			c.zk = startZookeeper(t, 1)
			c.leadAll(t)
		},
		"it comes back with another member": func(t *testing.T, c *cluster, z *zookeeper) {
			c.zk = startZookeeper(t, 1)
			fresh := c.add(t)
			fresh.start(t)
			c.leadAll(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testStartWithoutZooKeeper(t, test)
		})
	}
}

func testStartWithoutZooKeeper(t *testing.T, comeBack func(t *testing.T, c *cluster, z *zookeeper)) {
	z, version := startZookeeper(t, 1), versionName(1)
	c := newAway(t, z, version)
	for _, m := range c.members {
		m.kill()
	}
	z.killAll(t)
	stores := c.stores(t)
	for _, m := range c.members {
		m.launch(t)
	}
	old := slices.Clone(c.members)
	checkAway := func() {
		t.Helper()
		for _, m := range old {
			m.waitReady(t)
		}
		for _, m := range old {
			if r := m.node.Get(t, "/db/no-such-key"); r.Code != 404 {
				t.Errorf("%s answers a key that is not there with %d", m.name, r.Code)
			}
		}
		c.checkEach(t, old, version)
	}
	checkAway()
	if after := c.stores(t); !maps.Equal(after, stores) {
		t.Errorf("the blocks on the disks were %v, and are %v", stores, after)
	}

	comeBack(t, c, z)
	for _, m := range old {
		m.node.WaitLog(t, "joined the cluster")
	}
	checkAway()
	for _, m := range old {
		for line := range strings.Lines(m.node.Log()) {
			if strings.Contains(line, "load finished") && !strings.Contains(line, "records=0 ") {
				t.Errorf("%s has read the source: %s", m.name, line)
			}
		}
	}
	next := versionName(2)
	c.publish(t, next)
	c.waitServed(t, next)
}

// TestRememberedWithoutDisk: a node whose disk is unmounted does not write what it knows of the others to the disk below it.
func TestRememberedWithoutDisk(t *testing.T) {
	t.Parallel()
	c := newAway(t, startZookeeper(t, 1), versionName(1))
	m := c.members[0]
	expect.NoError(t, os.Rename(m.config.Store, m.config.Store+".away"))
	expect.NoError(t, os.Mkdir(m.config.Store, 0o755))
	c.publish(t, versionName(2)) // which the other nodes advertise
	m.node.WaitLog(t, "what this node knows of the others cannot be written")
	if left, err := os.ReadDir(m.config.Store); len(left) > 0 || err != nil {
		t.Errorf("there are %v, %v", left, err)
	}
}

// newAway returns a cluster of which each node remembers who holds what.
func newAway(t *testing.T, z *zookeeper, version string) *cluster {
	t.Helper()
	c := newCluster(t, z, settings{data: dataset{keys: 1000, partitions: 16}, members: 3, replication: 2, sharding: []string{"min_nodes = 0", `time_to_converge = "1s"`}})
	c.begin(t, version)
	c.waitWhole(t, z.look(t), version)
	for _, m := range c.members {
		m.waitRemembers(t, version)
	}
	return c
}

// waitRemembers waits until a member has written all that the others hold of a version.
func (m *member) waitRemembers(t testing.TB, version string) {
	t.Helper()
	m.node.WaitFor(t, m.name+" has written what the others hold", func() bool {
		var file struct {
			Held []struct {
				Content struct{ Name string }
				Nodes   map[string][]int
			}
		}
		data, _ := os.ReadFile(filepath.Join(m.config.Store, "data/_CLUSTER.json")) //nolint:errcheck // it may not be there yet
		if json.Unmarshal(data, &file) != nil || len(file.Held) != 1 || file.Held[0].Content.Name != version {
			return false
		}
		return !slices.ContainsFunc(m.c.members, func(o *member) bool {
			return o != m && !slices.Equal(slices.Sorted(slices.Values(file.Held[0].Nodes[o.addr()])), o.holds(t, version))
		})
	})
}

// leadAll leads all members to the cluster's ZooKeeper.
func (c *cluster) leadAll(t testing.TB) {
	t.Helper()
	for _, m := range c.members {
		m.link.lead(t, c.zk.servers[0])
	}
}

// stores returns the names of all blocks, by the inode and the path of each.
func (c *cluster) stores(t testing.TB) map[string]int64 {
	t.Helper()
	blocks := map[string]int64{}
	for _, m := range c.members {
		err := filepath.WalkDir(m.config.Store, func(path string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".block") {
				info, err := d.Info()
				if err != nil {
					return err
				}
				blocks[path] = info.ModTime().UnixNano()
			}
			return err
		})
		expect.NoError(t, err)
	}
	return blocks
}

// TestStartBehindOthers starts a node without ZooKeeper that was down while the others switched: it answers nothing of the older version, neither without
// ZooKeeper nor, once that is back, of keys that it does not hold.
func TestStartBehindOthers(t *testing.T) {
	t.Parallel()
	z, first, second := startZookeeper(t, 1), versionName(1), versionName(2)
	c := newAway(t, z, first)
	behind := c.members[0]
	behind.kill()
	l := z.look(t)
	process.Eventually(t, "it has left", func() bool { return len(l.names(t, "/"+c.name+"/v1/nodes")) == 2 })
	c.publish(t, second)
	c.waitServed(t, second)
	z.killAll(t)
	behind.launch(t)
	behind.node.WaitLog(t, "another node serves a newer version")
	r, err := behind.node.TryGet("/readyz")
	if err != nil || r.Code != 503 || !strings.Contains(string(r.Body), second) {
		t.Errorf("it is ready: %v, %v", r, err)
	}
	if r := behind.node.Get(t, "/db/"+c.data.key(0)); r.Code != 503 {
		t.Errorf("it answers from version %q with %d", r.Version(), r.Code)
	}
	z.restartAll(t)
	behind.node.WaitCurrent(t, db, second)
	c.checkEach(t, c.members, second)
}

// TestRememberedAddressReused starts a node without ZooKeeper while a node of another cluster, with a version of the same name, has the address of one
// that it remembers. It takes no value from there.
func TestRememberedAddressReused(t *testing.T) {
	t.Parallel()
	z, version := startZookeeper(t, 1), versionName(1)
	c := newAway(t, z, version)
	for _, m := range c.members {
		m.kill()
	}
	z.killAll(t)
	alone, other := c.members[0], c.members[1]
	held := roundRobin(c.names(), c.data.partitions, c.replication)[alone.name]

	other.config.Source, other.config.Store = t.TempDir(), filepath.Join(t.TempDir(), "store")
	expect.NoError(t, os.Mkdir(filepath.Join(other.config.Source, db), 0o755))
	different := c.data
	different.keys += 10
	different.publish(t, other.config.Source, version)
	other.config.Sections = "" // it is a cluster of its own
	other.node = process.Launch(t, other.config)
	other.node.WaitCurrent(t, db, version)

	alone.launch(t)
	alone.waitReady(t)
	client := alone.node.Client()
	defer client.Close()
	for i := range c.data.keys {
		key := c.data.key(i)
		r, err := client.Get("/" + db + "/" + key)
		expect.NoError(t, err)
		value, there := c.data.value(key, version)
		if !slices.Contains(held, c.data.partition(key)) {
			if r.Code != 502 && r.Code != 504 {
				t.Fatalf("key %s of another node: %d, %q", key, r.Code, r.Body)
			}
		} else if there && (r.Code != 200 || string(r.Body) != value) || !there && r.Code != 404 {
			t.Fatalf("key %s: %d, %q", key, r.Code, r.Body)
		}
	}
}
