//go:build integration

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestServing has five nodes share a version of 64 partitions, and asks each for
// everything.
func TestServing(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{
		data: dataset{keys: *allKeys, partitions: 64}, members: 5, replication: 2,
	})
	version := versionName(1)
	c.begin(t, version)
	c.waitWhole(t, z.look(t), version)

	held := roundRobin(c.names(), c.data.partitions, c.replication)
	t.Run("each node holds what the formula says", func(t *testing.T) {
		for _, m := range c.members {
			m.waitHeld(t, version, held[m.name])
		}
	})
	t.Run("peers answer by version", func(t *testing.T) { testPeerRequests(t, c, version, held) })
	t.Run("every key from every node", func(t *testing.T) { testEveryKey(t, c, version, held) })
	t.Run("a router holds nothing and serves everything", func(t *testing.T) { testRouter(t, c, version) })
}

// names are the members' shard ids.
func (c *cluster) names() []string {
	var names []string
	for _, m := range c.members {
		names = append(names, m.name)
	}
	return names
}

// ofEach gives a key of each partition.
func (d dataset) ofEach(version string) []string {
	keys := make([]string, d.partitions)
	for i := range d.keys {
		if key := d.key(i); keys[d.partition(key)] == "" {
			if _, there := d.value(key, version); there {
				keys[d.partition(key)] = key
			}
		}
	}
	return keys
}

// testPeerRequests requests a key of every partition from every node as a peer: the node answers
// from its own blocks, and never asks another node.
func testPeerRequests(t *testing.T, c *cluster, version string, held map[string][]int) {
	for _, m := range c.members {
		for p, key := range c.data.ofEach(version) {
			want := 501
			if slices.Contains(held[m.name], p) {
				want = 200
			}
			for _, name := range []string{version, "true"} {
				r := m.node.Get(t, "/"+db+"/"+key+"?proxy="+name)
				value, _ := c.data.value(key, version)
				if r.Code != want || want == 200 && (string(r.Body) != value || r.Version() != version) {
					t.Errorf("%s, partition %d, ?proxy=%s: %d of version %q: %q", m.name, p, name, r.Code, r.Version(), r.Body)
				}
			}
			if r := m.node.Get(t, "/"+db+"/"+key+"?proxy="+versionName(0)); r.Code != 501 {
				t.Errorf("%s, a version that does not exist: %d", m.name, r.Code)
			}
		}
	}
}

// testEveryKey reads each key from each node. Connections between nodes stay open
// for the next request.
func testEveryKey(t *testing.T, c *cluster, version string, held map[string][]int) {
	const workers = 4 // for each node
	before := map[*member]int{}
	for _, m := range c.members {
		before[m] = m.host.dialled(t)
	}
	holders := c.holders(held)
	var wg sync.WaitGroup
	for _, m := range c.members {
		for w := range workers {
			wg.Go(func() {
				client := m.node.Client()
				defer client.Close()
				if err := c.expectAll(client, m, version, holders, w, workers); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for _, m := range c.members {
		// Every worker may need a connection to each of the four others.
		if n, most := m.host.dialled(t)-before[m], 2*workers*(len(c.members)-1); n > most {
			t.Errorf("%s began %d connections for %d keys, want at most %d", m.name, n, c.data.keys, most)
		}
	}
}

// TestConnectionsAreKept requests values of several packets, most of them from other nodes: connections between nodes
// stay open although header and body arrive in pieces.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 1000, partitions: 12, pad: 6 << 10}, members: 3, replication: 1})
	version := versionName(1)
	c.begin(t, version)
	c.waitWhole(t, z.look(t), version)
	before := map[*member]int{}
	for _, m := range c.members {
		before[m] = m.host.dialled(t)
	}
	c.checkWhole(t, version)
	for _, m := range c.members {
		if n := m.host.dialled(t) - before[m]; n > 10 {
			t.Errorf("%s began %d connections for %d keys", m.name, n, c.data.keys)
		}
	}
}

// holders are the addresses of the members that hold each partition.
func (c *cluster) holders(held map[string][]int) [][]string {
	holders := make([][]string, c.data.partitions)
	for _, m := range c.members {
		for _, p := range held[m.name] {
			holders[p] = append(holders[p], m.addr())
		}
	}
	return holders
}

// expect asks a member for a key, and looks where the answer comes from if the
// holders of each partition are given.
func (c *cluster) expect(client *process.Client, m *member, key, version string, holders [][]string) error {
	r, err := client.Get("/" + db + "/" + key)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", m.name, key, err)
	}
	return c.check(r, m, key, version, holders)
}

// expectAll is expect for every step-th key from the first on. Several requests are sent at a time.
func (c *cluster) expectAll(client *process.Client, m *member, version string, holders [][]string, first, step int) error {
	for first < c.data.keys {
		var keys, targets []string
		for ; len(keys) < 20 && first < c.data.keys; first += step {
			keys = append(keys, c.data.key(first))
			targets = append(targets, "/"+db+"/"+c.data.key(first))
		}
		answers, err := client.GetAll(targets)
		if err != nil {
			return fmt.Errorf("%s: %s and further keys: %w", m.name, keys[0], err)
		}
		for i, r := range answers {
			if err := c.check(r, m, keys[i], version, holders); err != nil {
				return err
			}
		}
	}
	return nil
}

// check compares a member's answer.
func (c *cluster) check(r *process.Response, m *member, key, version string, holders [][]string) error {
	value, there := c.data.value(key, version)
	switch {
	case r.Version() != version, there && (r.Code != 200 || string(r.Body) != value), !there && r.Code != 404:
		return fmt.Errorf("%s: %s: %d of version %q: %.100q", m.name, key, r.Code, r.Version(), r.Body)
	case holders == nil:
		return nil
	}
	by, at := r.Header.Get("X-Sequins-Proxied-To"), holders[c.data.partition(key)]
	if local := slices.Contains(at, m.addr()); local && by != "" || !local && !slices.Contains(at, by) {
		return fmt.Errorf("%s: %s is held by %v and came from %q", m.name, key, at, by)
	}
	return nil
}

// testRouter adds a node that takes no partitions.
func testRouter(t *testing.T, c *cluster, version string) {
	router := c.add(t, `role = "router"`)
	defer func() { c.members = slices.DeleteFunc(c.members, func(m *member) bool { return m == router }) }()
	router.start(t)
	router.node.WaitCurrent(t, db, version)
	client := router.node.Client()
	defer client.Close()
	holders := c.holders(roundRobin(c.names()[:5], c.data.partitions, c.replication))
	expect.NoError(t, c.expectAll(client, router, version, holders, 0, 1+c.data.keys/5000))
	if p := router.holds(t, version); len(p) > 0 {
		t.Errorf("the router holds %v", p)
	}
	for _, name := range c.zk.look(t).names(t, "/"+c.name+"/v1/nodes") {
		if strings.Contains(name, router.addr()) {
			t.Errorf("the router is among the nodes that hold data: %s", name)
		}
	}
}

// TestManyDatabases loads one database at a time of many, which each node takes in another order: a node that waits for what others load lets the loads of
// other databases go on, for which they may wait.
func TestManyDatabases(t *testing.T) {
	t.Parallel()
	c := newCluster(t, sharedZookeeper(t), settings{data: dataset{keys: 100, partitions: 4}, members: 3, replication: 2, extra: "max_parallel_loads = 1\n"})
	version := versionName(1)
	c.publish(t, version)
	names := []string{db}
	for i := range 7 {
		names = append(names, fmt.Sprint(db, i))
		expect.NoError(t, os.CopyFS(filepath.Join(c.source, names[i+1]), os.DirFS(filepath.Join(c.source, db))))
	}
	c.startAll(t)
	for _, m := range c.members {
		for _, name := range names {
			m.node.WaitCurrent(t, name, version)
		}
		if strings.Contains(m.node.Log(), "is not waited for any longer") {
			t.Errorf("%s has read partitions of other nodes from the source", m.name)
		}
	}
}
