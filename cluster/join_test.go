//go:build integration

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/observe/status"
	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/zk"
)

// five returns five nodes with a short Converge.
func (f *testCluster) five() (cs []*Cluster) {
	f.options = func(o *Options) { o.Converge = 100 * time.Millisecond }
	for i := range 5 {
		c, _ := f.node(fmt.Sprint("n", i))
		cs = append(cs, c)
	}
	return cs
}

// joinAtOnce lets nodes join concurrently, and checks that each sees all others.
func (f *testCluster) joinAtOnce(cs []*Cluster, began func()) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), deadline)
	defer cancel()
	joined := make(chan string)
	for _, c := range cs {
		go func() {
			err := c.Join(ctx, nil)
			joined <- fmt.Sprintf("%d members, %v", len(c.Members()), err)
		}()
	}
	began()
	for range cs {
		if got, want := <-joined, fmt.Sprintf("%d members, <nil>", len(cs)); got != want {
			f.t.Errorf("a node has joined with %s", got)
		}
	}
}

// Nodes that start together find each other, even with a short Converge.
func testFiveAtOnce(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	cs := f.five()
	for _, c := range cs {
		f.eventually("there is a session", func() bool { return c.Status().State == zk.Connected })
	}
	f.joinAtOnce(cs, func() {})
}

// Nodes that choose their shard ids find each other, too, although each of them waits anew when another has chosen.
func testFiveChoosing(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	stores := f.stores(5)
	joined := make(chan string)
	for i, store := range stores {
		c, _ := f.choosing(store, fmt.Sprint("n", i))
		c.o.Converge = 100 * time.Millisecond
		f.eventually("there is a session", func() bool { return c.Status().State == zk.Connected })
		time.AfterFunc(time.Duration(i)*c.o.Converge*3/4, func() {
			err := c.Join(t.Context(), nil)
			joined <- fmt.Sprintf("%d members, %v", len(c.Members()), err)
		})
	}
	for range stores {
		if got := <-joined; got != "5 members, <nil>" {
			t.Errorf("a node has joined with %s", got)
		}
	}
}

// Nodes that start long before ZooKeeper find each other, too.
func testLate(t *testing.T, h *harness.Harness) {
	server := h.Do(t, "zk start id=late n=1 tick=2000")["connect"]
	t.Cleanup(func() { h.Do(t, "zk stop id=late") })
	h.Do(t, "zk kill id=late i=0")
	f := newTestCluster(t, server, nil)
	cs := f.five()
	for _, c := range cs {
		c.o.Converge = 3 * time.Second // a node tries to connect once a second
	}
	f.joinAtOnce(cs, func() {
		for _, c := range cs {
			f.eventually("it has looked for ZooKeeper", func() bool { return c.Status().LastError != "" })
		}
		h.Do(t, "zk restart id=late i=0")
	})
}

// A node that loses ZooKeeper while it joins waits for ZooKeeper, whatever it waited for before, and with ZooKeeper for that again.
func testLostWhileJoining(t *testing.T, h *harness.Harness) {
	server := h.Do(t, "zk start id=joining n=1 tick=2000")["connect"]
	t.Cleanup(func() { h.Do(t, "zk stop id=joining") })
	for before, options := range map[string]func(*Options){
		"the nodes to stay the same": func(o *Options) { o.Converge = time.Hour },
		"1 nodes of 2":               func(o *Options) { o.MinNodes = 2 },
	} {
		f := newTestCluster(t, server, options)
		c, _ := f.node("n")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Join(ctx, nil) }()
		waitsFor := func(what string, kind status.WaitFor) {
			t.Helper()
			f.eventually("it waits for "+what, func() bool {
				w := c.Joining()
				return w != nil && w.For == kind && strings.HasPrefix(w.What, what)
			})
		}
		waitsFor(before, status.WaitForNodes)
		h.Do(t, "zk kill id=joining i=0")
		waitsFor("ZooKeeper (connection: ", status.WaitForZooKeeper)
		h.Do(t, "zk restart id=joining i=0")
		waitsFor(before, status.WaitForNodes)
		cancel()
		if err := <-ended; err == nil {
			t.Error("it has joined")
		}
		c.Leave()
	}
}

// choosing returns a node that chooses its shard id. store is the directory of
// its file, name its address.
func (f *testCluster) choosing(store, name string) (c *Cluster, lose func()) {
	f.t.Helper()
	f.options = func(o *Options) {
		o.ShardID, o.ShardIDFile = "", filepath.Join(store, "self_assigned_id")
	}
	return f.node(name)
}

func (f *testCluster) stores(n int) (dirs []string) {
	for range n {
		dirs = append(dirs, f.t.TempDir())
	}
	return dirs
}

func shardIDs(cs ...*Cluster) string {
	var ids []string
	for _, c := range cs {
		ids = append(ids, c.ShardID())
	}
	return strings.Join(ids, " ")
}

// Nodes choose different numbers and keep them over a restart. A node that
// replaces another takes over its number.
func testShardIDs(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	stores := f.stores(4)
	var cs []*Cluster
	for i := range 3 {
		c, _ := f.choosing(stores[i], fmt.Sprint("n", i))
		cs = append(cs, c)
	}
	if got := shardIDs(cs...); got != "  " {
		t.Errorf("before they have joined, they are %q", got)
	}
	f.join(cs...)
	ids := strings.Fields(shardIDs(cs...))
	if slices.Sort(ids); !slices.Equal(ids, []string{"1", "2", "3"}) {
		t.Fatalf("shard ids %q", ids)
	}
	for _, m := range cs[0].Members() {
		if i := slices.IndexFunc(cs, func(c *Cluster) bool { return c.o.Addr == m.Addr }); i < 0 || m.ShardID != cs[i].ShardID() {
			t.Errorf("member %+v", m)
		}
	}
	if got := cs[0].Follow(t.Context(), "db", x.Input).Owned(6); len(got) != 4 {
		t.Errorf("of 6 partitions, one node has %v", got)
	}
	first := cs[0].ShardID()
	cs[0].Leave()
	again, _ := f.choosing(stores[0], "another-address")
	f.join(again)
	if again.ShardID() != first {
		t.Errorf("it was %s, and is %s", first, again.ShardID())
	}
	second := cs[1].ShardID()
	cs[1].Leave()
	f.eventually("it has left", func() bool { return len(again.Members()) == 2 })
	replacement, _ := f.choosing(stores[3], "replacement")
	f.join(replacement)
	if replacement.ShardID() != second {
		t.Errorf("it takes the place of %s, and is %s", second, replacement.ShardID())
	}
}

// A number that is configured on another member, or used by one of an older
// release, is not chosen; a node that has crashed gets its own back at once.
func testShardIDTaken(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	named, _ := f.node("1")
	f.join(named)
	store := t.TempDir()
	c, _ := f.choosing(store, "n")
	f.join(c)
	if c.ShardID() != "2" {
		t.Errorf("it is %q", c.ShardID())
	}
	crashed, _ := f.choosing(store, "n") // with the same address, while the session of the first exists
	began := time.Now()
	f.join(crashed)
	if took := time.Since(began); crashed.ShardID() != "2" || took >= long {
		t.Errorf("it is %q after %v", crashed.ShardID(), took)
	}
	expect.NoError(t, os.WriteFile(filepath.Join(store, "self_assigned_id"), []byte("../1"), 0o644))
	odd, _ := f.choosing(store, "odd")
	f.join(odd)
	if odd.ShardID() != "3" {
		t.Errorf("with a file that makes no sense, it is %q", odd.ShardID())
	}
}

// Of two nodes with the same stored number, the second chooses another and stores
// that.
func testCopiedDisk(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	stores := f.stores(2)
	for _, s := range stores {
		if err := os.WriteFile(filepath.Join(s, "self_assigned_id"), []byte("7"), 0o600); err != nil { // as the original sequins writes it
			t.Fatal(err)
		}
	}
	a, _ := f.choosing(stores[0], "a")
	f.join(a)
	file := filepath.Join(stores[1], "self_assigned_id")
	expect.NoError(t, os.WriteFile(file+".tmp", []byte("1"), 0o640)) // of a node that was killed
	b, _ := f.choosing(stores[1], "b")
	b.patience = 100 * time.Millisecond
	f.join(b)
	if got := shardIDs(a, b); got != "7 1" {
		t.Errorf("shard ids %q", got)
	}
	if id, err := readShardID(file); id != "1" {
		t.Errorf("the stored shard id: %q, %v", id, err)
	}
	b.Leave()
	b, _ = f.choosing(stores[1], "b")
	f.join(b)
	if got := b.ShardID(); got != "1" {
		t.Errorf("after a restart, it is %q", got)
	}
}

func TestShardIDFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "self_assigned_id")
	if id, err := readShardID(path); id != "" || err != nil {
		t.Errorf("no file: %q, %v", id, err)
	}
	for _, id := range []string{"1", "12"} {
		expect.NoError(t, os.WriteFile(path, []byte(id), 0o644))
		if got, err := readShardID(path); got != id || err != nil {
			t.Errorf("%q, %v, want %q", got, err, id)
		}
	}
	for _, text := range []string{"", "\n", "0", "-1", "01", "x", "1\n\n", "1 ", "99999999", strings.Repeat("1", 1000)} {
		expect.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		if id, err := readShardID(path); id != "" || err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %q, %v", text, id, err)
		}
	}
}
