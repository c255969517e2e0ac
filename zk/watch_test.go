//go:build integration

package zk

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"sequins/test/expect"
	"sequins/test/harness"
)

// count returns how often a text is in a log.
func count(log *expect.Output, text string) int { return strings.Count(log.String(), text) }

// Unexpected znodes in the directories do no harm, and are logged at a limited rate.
func testForeignZnodes(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	o := observe(t, e.servers)
	nobody := zk.DigestACL(zk.PermAll, "somebody", "else")
	o.make(t, "/sequins/v1/nodes/README", []byte("do not touch"))
	o.make(t, "/sequins/v1/nodes/a@host-a:1/child", nil) // our path has a child, so it must not be replaced
	o.make(t, "/sequins/v1/nodes/b@host-b:1", nil)
	o.make(t, "/sequins/v1/nodes/ü @:", bytes.Repeat([]byte("x"), MaxData+1))
	if _, err := o.Create("/sequins/v1/nodes/hidden", []byte("x"), 0, nobody); err != nil {
		t.Fatal(err)
	}
	var log expect.Output
	opts := e.options(t)
	opts.Logger = log.Logger()
	s := session(t, opts)
	nodes := watch(s, NodesDir)
	s.Publish(NodePath("a", "host-a:1"), nil)
	s.Publish(NodePath("b", "host-b:1"), []byte("x"))
	s.Publish(NodePath("c", "host-c:1"), nil)
	s.Publish("nodes/a\x01b@host:1", nil) // not a valid name in ZooKeeper
	expect.Eventually(t, "what can be published is", func() bool { return s.Status().Published == 2 && s.Status().Pending == 2 })
	awaitNames(t, nodes, "README", "a@host-a:1", "b@host-b:1", "c@host-c:1", "hidden", "ü @:")
	expect.Eventually(t, "the data of b is read", func() bool { return string(nodes.Entries()[2].Data) == "x" })
	for _, entry := range nodes.Entries() {
		if want := map[string]string{"README": "do not touch", "b@host-b:1": "x"}[entry.Name]; string(entry.Data) != want {
			t.Errorf("%s: data %q", entry.Name, entry.Data)
		}
		if want := entry.Name == "hidden" || entry.Name == "ü @:"; entry.Unreadable != want {
			t.Errorf("%s: unreadable %v", entry.Name, entry.Unreadable)
		}
	}
	for what, want := range map[string]int{
		"cannot write znode": 2, "replaced znodes of": 1, "invalid path": 1, "node has children": 1,
	} {
		if got := count(&log, what); got != want {
			t.Errorf("%q is in the log %d times, want %d", what, got, want)
		}
	}
	for _, ignored := range []string{"name=hidden error=\"zookeeper: not authenticated", "65537 bytes of data"} { // once for each reading
		if got := count(&log, ignored); got == 0 || got > logFirst {
			t.Errorf("%q is in the log %d times", ignored, got)
		}
	}
	expect.NoError(t, o.Delete("/sequins/v1/nodes/a@host-a:1/child", -1))
	expect.Eventually(t, "the obstacle is gone", func() bool { return s.Status().Published == 3 })
}

// A directory can be created, deleted, and created again.
func testDirectoryComesAndGoes(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a, b := session(t, e.options(t)), session(t, e.options(t))
	for range 2 {
		dir := watch(a, VersionDir("db", "1"))
		awaitSeen(t, dir)
		for i := range 5 {
			path := PartitionPath("db", "1", i, "host-b:1")
			b.Publish(path, nil)
			awaitNames(t, dir, fmt.Sprintf("%05d@host-b:1", i))
			b.Unpublish(path)
			awaitNames(t, dir)
			flush(t, b)
			b.Prune(PartitionsDir + "/db")
		}
		dir.Stop()
	}
}

// 1,000 changes in quick succession cause few listings, and the last shows the final state.
func testDamped(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	a, b := session(t, e.options(t)), session(t, e.options(t))
	var seen changes
	dir := watch(b, VersionDir("db", "1"), seen.count)
	awaitSeen(t, dir)
	start, before := time.Now(), seen.Load()
	for p := range 1000 {
		a.Publish(PartitionPath("db", "1", p, "host-a:1"), nil)
		flush(t, a)
	}
	if n, most := seen.Load()-before, int64(time.Since(start)/minInterval)+2; n > most || n == 0 {
		t.Errorf("%d changes in %v, at most %d are due", n, time.Since(start), most)
	}
	expect.Eventually(t, "all are seen", func() bool { return len(dir.Entries()) == 1000 })
}

// A large directory is listed less often than a small one.
func TestDamping(t *testing.T) {
	for size, least := range map[int]time.Duration{
		0: minInterval, 4 << 10: minInterval, 128 << 10: time.Second, 700 << 10: 5 * time.Second,
	} {
		for range 100 {
			if d := damping(size); d < least || d > 2*least+time.Second {
				t.Errorf("%d bytes: %v", size, d)
			}
		}
	}
}

func TestLargeListingWarning(t *testing.T) {
	var log expect.Output
	s := &Session{o: Options{Logger: log.Logger()}}
	c := &Children{s: s, dir: "/d"}
	c.warnLarge(warnListing-1, 1)
	if count(&log, "large") != 0 {
		t.Error("warned below the limit")
	}
	for range 10 {
		c.warnLarge(warnListing, 15_000)
	}
	if n := count(&log, "large directory"); n != logFirst || count(&log, "children=15000") != n {
		t.Errorf("%d warnings", n)
	}
}

// The data of 1,000 partitions with three replicas is read once, then only that of new znodes, and all of it again when
// znodes were replaced.
func testDataOfMany(t *testing.T, h *harness.Harness) {
	const partitions = 1000
	hosts := []string{"a:1", "b:1", "c:1"}
	e := startEnsemble(t, h, "")
	a, b := session(t, e.options(t)), session(t, e.options(t))
	b.reads.SetLimit(0) // from now on, Tokens only decreases
	reads := func(what string, ready func() bool) int {
		t.Helper()
		before, start := b.reads.Tokens(), time.Now()
		expect.Eventually(t, what, ready)
		t.Logf("%s: %v", what, time.Since(start))
		return int(before - b.reads.Tokens())
	}
	publish := func(p int, data string) {
		for _, host := range hosts {
			a.Publish(PartitionPath("db", "1", p, host), []byte(data))
		}
	}
	for p := range partitions {
		publish(p, "one")
	}
	flush(t, a)
	dir := watch(b, VersionDir("db", "1"))
	with := func(data string) func() bool {
		return func() (all bool) {
			n := 0
			for _, entry := range dir.Entries() {
				if string(entry.Data) == data {
					n++
				}
			}
			return n == len(dir.Entries()) && n >= 3*partitions && dir.Current()
		}
	}
	if n := reads("all are read", with("one")); n != 3*partitions {
		t.Errorf("%d were read", n)
	}
	publish(partitions, "one")
	flush(t, a)
	if n := reads("three are new", func() bool { return len(dir.Entries()) == 3*partitions+3 }); n != 3 {
		t.Errorf("for three new ones, %d were read", n)
	}
	a.Unpublish(PartitionPath("db", "1", 0, hosts[0]))
	flush(t, a)
	if n := reads("one is gone", func() bool { return len(dir.Entries()) == 3*partitions+2 }); n != 0 {
		t.Errorf("for one that is gone, %d were read", n)
	}
	a.Publish(PartitionPath("db", "1", 7, hosts[0]), []byte("two"))
	flush(t, a)
	n := reads("the new data is seen", func() bool {
		for _, entry := range dir.Entries() {
			if entry.Name == "00007@"+hosts[0] {
				return string(entry.Data) == "two"
			}
		}
		return false
	})
	if n != 3*partitions+2 {
		t.Errorf("for one that was replaced, %d were read", n)
	}
}

// Current is false from the announcement of a change until the view shows it.
func testCurrent(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	s := session(t, e.options(t))
	nodes := watch(s, NodesDir)
	for i := range 20 {
		s.Publish(NodePath(fmt.Sprint(i), "host-a:1"), nil)
		flush(t, s) // the event arrives before the answer
		expect.Eventually(t, "the view is current", nodes.Current)
		if n := len(nodes.Entries()); n != i+1 {
			t.Fatalf("Current is true with %d entries of %d", n, i+1)
		}
	}
}

// A stopped view leaves nothing, and changes no more, although the directory is viewed again.
func testStopped(t *testing.T, h *harness.Harness) {
	e := startEnsemble(t, h, "")
	s := session(t, e.options(t))
	one := watch(s, NodesDir)
	s.Publish(NodePath("a", "host-a:1"), nil)
	awaitNames(t, one, "a@host-a:1")
	one.Stop()
	two := watch(s, NodesDir)
	one.Stop()
	s.Publish(NodePath("b", "host-b:1"), nil)
	awaitNames(t, two, "a@host-a:1", "b@host-b:1")
	if len(names(one)) != 1 {
		t.Errorf("the stopped view: %q", names(one))
	}
	two.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watched) != 0 {
		t.Errorf("left: %v", s.watched)
	}
}
