//go:build integration

package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sequins/internal/content"
	"sequins/shard"
	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/version"
	"sequins/zk"
)

// TestMain lets many tests run side by side, however few cores there are: most of what they do is wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// testCluster is a cluster with a root of its own in ZooKeeper.
type testCluster struct {
	t       *testing.T
	server  string
	options func(*Options)
}

func newTestCluster(t *testing.T, server string, options func(*Options)) *testCluster {
	return &testCluster{t, server, options}
}

// root is the directory of the cluster in ZooKeeper.
func (f *testCluster) root() string {
	return "/" + strings.NewReplacer("/", "-", ",", "").Replace(f.t.Name()) + "/v1"
}

// node returns a node that has not joined yet, and a function that ends its session without a Leave.
func (f *testCluster) node(id string) (c *Cluster, lose func()) {
	f.t.Helper()
	session := zk.Connect(zk.Options{
		Servers: []string{f.server}, ConnectTimeout: time.Second, SessionTimeout: long,
		Root: f.root(), Logger: slog.New(slog.DiscardHandler),
	})
	o := Options{
		Session: session, ShardID: id, Addr: id + ":1", MinReplication: 1, Converge: 300 * time.Millisecond,
		Settings:   Settings{Replication: 2, Assignment: shard.RoundRobin, Weight: 1},
		Remembered: filepath.Join(f.t.TempDir(), "CLUSTER.json"),
		Logger:     slog.New(slog.DiscardHandler),
	}
	if f.options != nil {
		f.options(&o)
	}
	c = New(o)
	lost := false
	lose = func() {
		if !lost {
			lost = true
			session.Close() //nolint:errcheck // a test
			c.Leave()
		}
	}
	f.t.Cleanup(lose)
	return c, lose
}

// join lets nodes join concurrently.
func (f *testCluster) join(cs ...*Cluster) {
	f.t.Helper()
	if len(cs) > 1 {
		for _, c := range cs {
			c.o.MinNodes = len(cs)
		}
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), deadline)
	defer cancel()
	errs := make(chan error)
	for _, c := range cs {
		go func() { errs <- c.Join(ctx, nil) }()
	}
	for range cs {
		expect.NoError(f.t, <-errs)
	}
}

const (
	deadline = time.Minute
	// long is a session timeout that no test waits for, and that a busy machine does not exceed.
	long = 30 * time.Second
)

func (f *testCluster) eventually(what string, ok func() bool) {
	f.t.Helper()
	expect.Eventually(f.t, what, ok)
}

// holder is a node with the partitions that it holds of the content x, in place of package node.
type holder struct {
	*Cluster
	version.Following
	held []bool
}

func hold(c *Cluster, partitions int) *holder {
	h := &holder{c, c.Follow(context.Background(), "db", input("1", "x")), make([]bool, partitions)}
	h.SetDivision(x.Division, len(h.held))
	return h
}

// serve lets a node advertise partitions of an input by the division of x.
func serve(c *Cluster, in content.Input, partitions ...int) version.Following {
	f := c.Follow(context.Background(), "db", in)
	f.SetDivision(x.Division, slices.Max(partitions)+1)
	for _, p := range partitions {
		f.Advertise(p)
	}
	return f
}

// load loads the owned partitions and drops the surplus.
func (h *holder) load() {
	for _, p := range h.Owned(len(h.held)) {
		if !h.held[p] {
			h.held[p] = true
			h.Advertise(p)
		}
	}
	for _, p := range h.Surplus(h.held) {
		h.Withdraw(p)
		h.held[p] = false
	}
}

func (h *holder) has() []int {
	var has []int
	for p, here := range h.held {
		if here {
			has = append(has, p)
		}
	}
	return has
}

// replicas returns the number of holders by partition.
func replicas(holders ...*holder) []int {
	counts := make([]int, len(holders[0].held))
	for _, h := range holders {
		for _, p := range h.has() {
			counts[p]++
		}
	}
	return counts
}

func all(partitions, n int) []int { return slices.Repeat([]int{n}, partitions) }

func TestCluster(t *testing.T) {
	h := harness.Start(t)
	server := h.Do(t, "zk start n=1 tick=2000")["connect"]
	t.Run("nodes", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, string){
			"divide, advertise, leave": testDivide,
			"a node too few":           testMinNodes,
			"lost in an upgrade":       testLostInUpgrade,
			"no healing":               testNoHealing,
			"healing round_robin":      func(t *testing.T, server string) { testHealing(t, server, shard.RoundRobin) },
			"healing balanced":         func(t *testing.T, server string) { testHealing(t, server, shard.Balanced) },
			"router":                   testRouter,
			"old znodes":               testOldZnodes,
			"mismatch":                 testMismatch,
			"changes":                  testChanges,
			"vanished":                 testVanishedAreForgotten,
			"divisions":                testDivisions,
			"two contents":             testTwoContents,
			"leave":                    testLeave,
			"five at once":             testFiveAtOnce,
			"five that choose":         testFiveChoosing,
			"shard ids":                testShardIDs,
			"shard id of another":      testShardIDTaken,
			"a disk that was copied":   testCopiedDisk,
			"removed":                  testRemoved,
			"reports":                  testReports,
			"alone after away":         testAloneAfterAway,
			"rule":                     testRule,
			"first rule":               testFirstRule,
			"rule of others":           testRuleOfOthers,
			"upstream first":           testUpstreamFirst,
			"upstream later":           testUpstreamLater,
			"rule changes":             testRuleChanges,
			"unknown rule":             testUnknownRule,
			"named rule":               testNamedRule,
			"rule beside named":        testRuleBesideNamed,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, server)
			})
		}
	})
	t.Run("ZooKeeper late", func(t *testing.T) { testLate(t, h) })
	t.Run("ZooKeeper lost while joining", func(t *testing.T) { testLostWhileJoining(t, h) })
}

func testDivide(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	a, _ := f.node("a")
	b, _ := f.node("b")
	c, loseC := f.node("c")
	f.join(a, b, c)
	hs := []*holder{hold(a, 7), hold(b, 7), hold(c, 7)}
	for i, want := range [][]int{{0, 1, 3, 4, 6}, {0, 2, 3, 5, 6}, {1, 2, 4, 5}} {
		if diff := cmp.Diff(want, hs[i].Owned(len(hs[i].held))); diff != "" {
			t.Errorf("node %d: %s", i, diff)
		}
	}
	if got := version.Missing(hs[0], hs[0].held, 1); len(got) != 7 {
		t.Errorf("before anything is loaded, missing are %v", got)
	}
	if a.Knows("db") {
		t.Error("Knows is true for a db without holders")
	}
	for _, x := range hs {
		x.load()
	}
	f.eventually("a knows the db", func() bool { return a.Knows("db") && !a.Knows("other") })
	for _, x := range hs {
		f.eventually("all see two replicas", func() bool { return len(version.Missing(x, x.held, 2)) == 0 })
	}
	if diff := cmp.Diff([]string{"b:1"}, hs[0].Peers(0)); diff != "" {
		t.Errorf("peers of a for 0: %s", diff)
	}
	if got := hs[0].Peers(2); len(got) != 2 {
		t.Errorf("peers of a for 2: %q", got)
	}
	if n := hs[0].Replicas(99) + len(hs[0].Peers(99)); n != 0 {
		t.Error("replicas of an unknown partition")
	}
	hs[2].Withdraw(1, 2)
	f.eventually("two are withdrawn", func() bool { return cmp.Equal(version.Missing(hs[0], hs[0].held, 2), []int{1, 2}) })
	loseC()
	f.eventually("c is gone", func() bool {
		return cmp.Equal(version.Missing(hs[0], hs[0].held, 2), []int{1, 2, 4, 5}) && len(a.Members()) == 2
	})
	if !slices.Contains(hs[0].Peers(5), "c:1") {
		t.Error("c is not a peer any more, but may still answer")
	}
	if got := hs[2].Peers(0); len(got) != 2 {
		t.Errorf("c has left and has lost its peers: %v", got)
	}
}

// Join waits for MinNodes members, or until ctx ends.
func testMinNodes(t *testing.T, server string) {
	f := newTestCluster(t, server, func(o *Options) { o.MinNodes = 2 })
	a, _ := f.node("a")
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	a.log = slog.New(slog.NewTextHandler(writing(func(line string) {
		if strings.Contains(line, "1 nodes of 2") {
			cancel() // the condition is checked again only after that
		}
	}), nil))
	if err := a.Join(ctx, nil); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1 nodes of 2") {
		t.Errorf("alone: %v", err)
	}
	b, _ := f.node("b")
	f.join(b)
}

// writing is called with each line of a log.
type writing func(line string)

func (f writing) Write(line []byte) (int, error) {
	f(string(line))
	return len(line), nil
}

// A node that is lost before a version is complete does not block it, even without healing: the others take over its
// partitions.
func testLostInUpgrade(t *testing.T, server string) {
	f := newTestCluster(t, server, func(o *Options) { o.Settings.Replication = 1 })
	a, _ := f.node("a")
	b, _ := f.node("b")
	c, loseC := f.node("c")
	f.join(a, b, c)
	ha, hb := hold(a, 9), hold(b, 9)
	hold(c, 9)
	ha.load()
	hb.load()
	if got := replicas(ha, hb); slices.Equal(got, all(9, 1)) {
		t.Fatal("a and b hold all without c")
	}
	loseC()
	f.eventually("a and b hold what c should have", func() bool {
		ha.load()
		hb.load()
		return len(version.Missing(ha, ha.held, 1))+len(version.Missing(hb, hb.held, 1)) == 0
	})
}

// Without heal_after a complete version is not assigned again.
func testNoHealing(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	a, _ := f.node("a")
	b, _ := f.node("b")
	c, loseC := f.node("c")
	f.join(a, b, c)
	ha, hb, hc := hold(a, 6), hold(b, 6), hold(c, 6)
	for _, x := range []*holder{ha, hb, hc} {
		x.load()
	}
	for _, x := range []*holder{ha, hb} {
		f.eventually("it is complete", func() bool { return len(version.Missing(x, x.held, 2)) == 0 })
		x.Switched()
	}
	before := slices.Clone(ha.has())
	loseC()
	f.eventually("c is gone", func() bool { return len(a.Members()) == 2 })
	for end := time.Now().Add(10 * a.o.Converge); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ha.load()
		if !slices.Equal(before, ha.has()) {
			t.Fatalf("a held %v and holds %v", before, ha.has())
		}
	}
	// The next version is assigned to the remaining members.
	if got := a.Follow(t.Context(), "db", input("2", "x")).Owned(6); len(got) != 6 {
		t.Errorf("of another version a has to hold %v", got)
	}
}

// With heal_after the replicas of a lost node are replaced and a new node takes its share; nothing is dropped before
// that.
func testHealing(t *testing.T, server string, rule shard.Assignment) {
	const partitions = 24
	f := newTestCluster(t, server, func(o *Options) { o.HealAfter, o.Settings.Assignment = 600*time.Millisecond, rule })
	var nodes []*holder
	var lose func()
	for i := range 4 {
		var c *Cluster
		c, lose = f.node(fmt.Sprintf("n%d", i))
		nodes = append(nodes, &holder{Cluster: c})
	}
	f.join(nodes[0].Cluster, nodes[1].Cluster, nodes[2].Cluster, nodes[3].Cluster)
	for i := range nodes {
		nodes[i] = hold(nodes[i].Cluster, partitions)
	}
	step := func() []int {
		for _, n := range nodes {
			n.load()
		}
		return replicas(nodes...)
	}
	atLeast := func(least int) {
		if counts := step(); slices.Min(counts) < least {
			t.Fatalf("replicas: %v", counts)
		}
	}
	step()
	f.eventually("all is held twice", func() bool { return slices.Equal(step(), all(partitions, 2)) })
	lose()
	nodes = nodes[:3]
	f.eventually("the lost replicas are replaced", func() bool { atLeast(1); return slices.Equal(step(), all(partitions, 2)) })
	c, _ := f.node("joins")
	f.join(c)
	nodes = append(nodes, hold(c, partitions))
	f.eventually("the new node has its share, and the others have given theirs up", func() bool {
		atLeast(2)
		return len(nodes[3].has()) == partitions*2/4 && slices.Equal(replicas(nodes...), all(partitions, 2))
	})
}

func testRouter(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	a, _ := f.node("a")
	f.join(a)
	f.options = func(o *Options) { o.Router = true }
	r, _ := f.node("router")
	f.join(r)
	ha, hr := hold(a, 4), hold(r, 4)
	if got := hr.Owned(len(hr.held)); len(got) != 0 {
		t.Errorf("a router has to hold %v", got)
	}
	ha.load()
	if len(ha.has()) != 4 || len(a.Members()) != 1 {
		t.Errorf("a holds %v of 4 among %v", ha.has(), a.Members())
	}
	f.eventually("the router knows of all", func() bool { return len(version.Missing(hr, hr.held, 1)) == 0 })
}

// The directories of old versions are removed, also those whose nodes have all gone.
func testOldZnodes(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	a, lose := f.node("a")
	f.join(a)
	serve(a, input("0", "x"), 1)
	f.flush(a)
	lose()
	b, _ := f.node("b")
	f.join(b)
	names := f.names(zk.PartitionsDir + "/db")
	first := serve(b, input("1", "x"), 0)
	serve(b, input("2", "x"), 0)
	f.eventually("what was left is gone", func() bool { return names() == "1 2" })
	first.Stop()
	f.eventually("the newest is left", func() bool { return names() == "2" })
}

func testMismatch(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	a, _ := f.node("a")
	f.join(a)
	f.options = func(o *Options) { o.Settings.Replication = 3 }
	b, loseB := f.node("b")
	f.join(b)
	f.eventually("both nodes report the mismatch", func() bool { return len(a.Problems()) == 1 && len(b.Problems()) == 1 })
	loseB()
	f.eventually("it is resolved", func() bool { return len(a.Problems()) == 0 })
}
