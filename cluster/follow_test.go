//go:build integration

package cluster

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/content"
	"sequins/version"
	"sequins/zk"
)

// alone returns a node that has no ZooKeeper.
func alone(t *testing.T) *Cluster {
	c, _ := newTestCluster(t, "127.0.0.1:1", nil).node("me")
	return c
}

// Nodes that have vanished are not forgotten without ZooKeeper, as they may be back.
func TestVanishedWithoutZooKeeper(t *testing.T) {
	c := alone(t)
	f := c.follow("db", x.Input)
	f.SetDivision(x.Division, 1)
	f.updatePartitions([]zk.Entry{znode(0, "a:1", x)})
	f.updatePartitions(nil)
	if c.assignAgain(time.Now().Add(missedFor)); !slices.Equal(f.Peers(0), []string{"a:1"}) {
		t.Errorf("%v are asked", f.Peers(0))
	}
}

// A node that has vanished is not asked any more after a while, also if nothing else of the version changes.
func testVanishedAreForgotten(t *testing.T, server string) {
	cluster := newTestCluster(t, server, nil)
	a, _ := cluster.node("a")
	b, loseB := cluster.node("b")
	c, _ := cluster.node("c")
	cluster.join(a, b, c)
	f := serve(a, x.Input, 0)
	serve(b, x.Input, 0)
	onC := serve(c, x.Input, 0)
	cluster.eventually("both are known", func() bool { return f.Replicas(0) == 2 })
	loseB()
	cluster.eventually("b has vanished", func() bool { return f.Replicas(0) == 1 && len(a.Members()) == 2 })
	gone := time.Now()
	onC.Withdraw(0)
	cluster.eventually("c has withdrawn it", func() bool { return f.Replicas(0) == 0 })
	withdrawn := time.Now()
	for _, at := range []struct {
		now  time.Time
		want []string
	}{{gone.Add(withdrawnFor), []string{"c:1", "b:1"}}, {withdrawn.Add(withdrawnFor), []string{"b:1"}}, {gone.Add(missedFor), nil}} {
		if a.assignAgain(at.now); !slices.Equal(f.Peers(0), at.want) {
			t.Errorf("%v are asked, want %v", f.Peers(0), at.want)
		}
	}
}

// A node that has changed to another content is not a peer, unlike one that has lost ZooKeeper.
func TestOtherContentIsNotVanished(t *testing.T) {
	f := alone(t).follow("db", x.Input)
	f.SetDivision(x.Division, 1)
	for i, step := range []struct {
		entries []zk.Entry
		asked   bool
	}{
		{[]zk.Entry{znode(0, "a:1", x)}, true},
		{nil, true},
		{[]zk.Entry{znode(0, "a:1", y)}, false},
		{nil, false},
		{[]zk.Entry{znode(0, "a:1", y, x)}, true},
		{[]zk.Entry{znode(0, "a:1", redivided)}, false},
	} {
		f.updatePartitions(step.entries)
		if asked := slices.Contains(f.Peers(0), "a:1"); asked != step.asked {
			t.Errorf("step %d: asked %v", i, asked)
		}
	}
}

// Elsewhere has the contents of all inputs that others advertise or report, with their addresses.
func TestElsewhere(t *testing.T) {
	report := func(c content.Content, addr string) zk.Entry {
		return zk.Entry{Name: c.Code() + "@" + addr, Data: encoded(t, "r")}
	}
	for name, tt := range map[string]struct {
		partitions, reports []zk.Entry
		want                map[content.Content][]string
	}{
		"nothing":          {nil, nil, map[content.Content][]string{}},
		"advertisements":   {[]zk.Entry{znode(0, "b:1", x), znode(1, "a:1", x), znode(1, "b:1", x)}, nil, map[content.Content][]string{x: {"a:1", "b:1"}}},
		"reports":          {nil, []zk.Entry{report(x, "b:1"), report(x, "a:1")}, map[content.Content][]string{x: {"a:1", "b:1"}}},
		"both":             {[]zk.Entry{znode(0, "b:1", x)}, []zk.Entry{report(x, "a:1"), report(x, "b:1")}, map[content.Content][]string{x: {"a:1", "b:1"}}},
		"of another input": {[]zk.Entry{znode(0, "a:1", y, x)}, []zk.Entry{report(y, "b:1")}, map[content.Content][]string{x: {"a:1"}, y: {"a:1", "b:1"}}},
		"another division": {[]zk.Entry{znode(0, "a:1", x)}, []zk.Entry{report(redivided, "a:1")}, map[content.Content][]string{x: {"a:1"}, redivided: {"a:1"}}},
		"of this node":     {[]zk.Entry{znode(0, "me:1", x)}, []zk.Entry{report(x, "me:1")}, map[content.Content][]string{}},
		"of upstream's":    {[]zk.Entry{znode(0, "a:1")}, nil, map[content.Content][]string{}},
		"malformed reports": {nil, []zk.Entry{
			{Name: "stray"}, {Name: "x.y@a:1"}, {Name: x.Code() + "@a"}, {Name: x.Code() + "@b:1", Unreadable: true}, {Name: x.Code() + "@b:1", Data: []byte("{}")},
		}, map[content.Content][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := alone(t)
			f, other := c.follow("db", x.Input), c.follow("db", y.Input)
			f.updatePartitions(tt.partitions)
			f.updateReports(tt.reports)
			for division := range 2 {
				if diff := cmp.Diff(tt.want, f.Elsewhere()); diff != "" {
					t.Errorf("after %d divisions: %s", division, diff)
				}
				f.SetDivision(x.Division, 2)
			}
			if diff := cmp.Diff(tt.want, other.Elsewhere()); diff != "" {
				t.Errorf("another input of the version: %s", diff)
			}
		})
	}
}

// A node holds two contents of one version, whatever the order of their hashes, and has switched from one to the other.
func TestTwoContents(t *testing.T) {
	for _, cs := range [][]content.Content{{x, y}, {y, x}} {
		c := alone(t)
		old, next := c.follow("db", cs[0].Input), c.follow("db", cs[1].Input)
		held := make([]bool, 2)
		for i, f := range []*following{old, next} {
			f.updatePartitions(nil)
			f.SetDivision(cs[i].Division, len(held))
			f.Advertise(0)
			f.Switched()
			if f.history.sufficed {
				t.Errorf("content %d suffices without partition 1", i)
			}
			f.Advertise(1)
			f.updatePartitions([]zk.Entry{znode(0, "a:1", cs[i]), znode(1, "old:1")})
			if !f.history.sufficed || f.Replicas(0) != 1 || !slices.Equal(f.Peers(1), []string{"old:1"}) {
				t.Errorf("content %d: suffices %v, %d replicas, peers %q", i, f.history.sufficed, f.Replicas(0), f.Peers(1))
			}
		}
		if got := old.Replicas(0); got != 0 || !old.history.sufficed || old.Replicas(1) != 1 {
			t.Errorf("of the old content %d replicas, suffices %v, %d of upstream's", got, old.history.sufficed, old.Replicas(1))
		}
		old.Stop()
		next.updatePartitions(nil)
		if len(next.advertised) != 2 || next.Replicas(0) != 0 || old.Replicas(1) != 1 || next.known.Err() != nil {
			t.Errorf("after Stop of the old content: %v advertised, %d and %d replicas", next.advertised, next.Replicas(0), old.Replicas(1))
		}
	}
}

// Queries change nothing: status pages call them, too.
func TestQueriesChangeNothing(t *testing.T) {
	f := alone(t).follow("db", x.Input)
	held := []bool{true, true}
	query := func() {
		f.Owned(len(held))
		f.Owners()
		version.Missing(f, held, 1)
		f.Surplus(held)
		f.Replicas(0)
		f.Peers(0)
		f.Elsewhere()
		f.Reports()
	}
	query()
	if f.assignment != nil || f.history.sufficed {
		t.Errorf("a query assigned partitions (%v) or set sufficed (%v)", f.assignment, f.history.sufficed)
	}
	f.SetDivision(x.Division, len(held))
	assignment := f.assignment
	query()
	if f.assignment != assignment || f.history.sufficed {
		t.Errorf("a query assigned partitions again (%v) or set sufficed (%v)", f.assignment != assignment, f.history.sufficed)
	}
	if diff := cmp.Diff([]int{0, 1}, f.Owned(len(held))); diff != "" {
		t.Error(diff)
	}
	f.Advertise(0)
	f.Advertise(1)
	f.Switched()
	if !f.history.sufficed {
		t.Error("the advertised replicas are not recorded")
	}
}

// An input is followed until Stop, however often Follow is called. Nothing is published after that, nor before a
// division is set.
func TestStop(t *testing.T) {
	c := alone(t)
	f := c.follow("db", x.Input)
	if c.follow("db", x.Input) != f || c.follow("db", y.Input) == f || c.follow("other", x.Input) == f {
		t.Error("an input is followed twice, or two are one")
	}
	published := func() int { return c.Status().Pending } // nothing is ever written
	f.Advertise(0)
	f.Report([]byte("early"))
	if n := published(); n > 0 {
		t.Errorf("without a division, %d znodes are published", n)
	}
	f.SetDivision(x.Division, 2)
	f.Advertise(0)
	f.Report([]byte("report"))
	if n := published(); n != 2 {
		t.Errorf("%d znodes are published, not a partition and a report", n)
	}
	f.Stop()
	f.Advertise(1)
	f.SetDivision(y.Division, 2)
	f.Advertise(1)
	f.Report([]byte("late"))
	f.Stop()
	if n := published(); n != 2 || len(f.advertised) > 0 || c.versions[key{"db", "1"}] == nil {
		t.Errorf("after Stop: advertised %v, %d znodes, followed %v", f.advertised, n, c.versions)
	}
	again := c.follow("db", x.Input)
	if again == f {
		t.Error("an input is not followed again")
	}
	again.Stop()
	c.follow("db", y.Input).Stop()
	if c.versions[key{"db", "1"}] != nil || again.known.Err() == nil {
		t.Error("a version is watched without a followed input")
	}
}

// Nodes with different divisions of an input do not count each other until the divisions are equal.
func testDivisions(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	ca, _ := f.node("a")
	cb, _ := f.node("b")
	old, _ := f.node("old")
	f.join(ca, cb, old)
	held := make([]bool, 3)
	a, b := ca.Follow(t.Context(), "db", x.Input), cb.Follow(t.Context(), "db", x.Input)
	advertise := func(v version.Following) {
		for p := range held {
			v.Advertise(p)
		}
	}
	for p := range held { // like upstream's
		old.o.Session.Publish(zk.PartitionPath("db", "1", p, old.o.Addr), nil)
	}
	b.SetDivision(redivided.Division, len(held))
	advertise(b)
	f.eventually("before a has a division, all count", func() bool { return a.Replicas(2) == 2 })
	a.SetDivision(x.Division, len(held))
	if n := a.Replicas(2); n != 1 {
		t.Errorf("%d replicas count", n)
	}
	if diff := cmp.Diff(map[content.Content][]string{redivided: {"b:1"}}, a.Elsewhere()); diff != "" {
		t.Errorf("elsewhere: %s", diff)
	}
	if diff := cmp.Diff([]string{"old:1"}, a.Peers(2)); diff != "" {
		t.Errorf("peers: %s", diff)
	}
	if diff := cmp.Diff([]int{0, 1, 2}, version.Missing(a, held, 2)); diff != "" {
		t.Errorf("missing: %s", diff)
	}
	advertise(a)
	b.SetDivision(x.Division, len(held)) // planned again
	f.eventually("b counts a", func() bool { return b.Replicas(1) == 2 })
	if n := a.Replicas(2); n != 1 {
		t.Errorf("b holds nothing of its new content yet, and counts: %d", n)
	}
	advertise(b)
	f.eventually("a counts b", func() bool { return len(version.Missing(a, held, 2)) == 0 })
	if got := a.Peers(0); len(got) != 2 {
		t.Errorf("peers: %q", got)
	}
	f.eventually("no other content is left", func() bool { return cmp.Equal(a.Elsewhere(), map[content.Content][]string{x: {"b:1"}}) })
	b.SetDivision(redivided.Division, len(held))
	advertise(b) // the same names with other data
	f.eventually("a has noticed", func() bool {
		return a.Replicas(0)+a.Replicas(1)+a.Replicas(2) == 3
	})
	if diff := cmp.Diff([]string{"old:1"}, a.Peers(2)); diff != "" {
		t.Errorf("peers: %s", diff)
	}
}

// A node that holds two contents of a version is a replica of both, until it stops following one.
func testTwoContents(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	cBoth, _ := f.node("both")
	cEarly, _ := f.node("early")
	cLate, _ := f.node("late")
	f.join(cBoth, cEarly, cLate)
	both, early, late := serve(cBoth, x.Input, 0, 1), cEarly.Follow(t.Context(), "db", x.Input), cLate.Follow(t.Context(), "db", y.Input)
	early.SetDivision(x.Division, 2)
	late.SetDivision(y.Division, 2)
	f.eventually("it has the old content", func() bool {
		return early.Replicas(1) == 1 && cmp.Equal(late.Elsewhere(), map[content.Content][]string{x: {"both:1"}})
	})
	next := serve(cBoth, y.Input, 0)
	f.eventually("it has both contents of partition 0", func() bool {
		return early.Replicas(0) == 1 && late.Replicas(0) == 1 && len(early.Elsewhere()) == 2
	})
	if early.Replicas(1) != 1 || late.Replicas(1) != 0 {
		t.Errorf("of partition 1 there are %d and %d", early.Replicas(1), late.Replicas(1))
	}
	late.Advertise(1)
	f.eventually("the new content counts those who have no other", func() bool { return next.Replicas(1) == 1 && both.Replicas(1) == 0 })
	both.Withdraw(0)
	f.eventually("one of two is withdrawn", func() bool { return early.Replicas(0) == 0 && early.Replicas(1) == 1 && late.Replicas(0) == 1 })
	both.Advertise(0)
	f.eventually("it is back", func() bool { return early.Replicas(0) == 1 && late.Replicas(0) == 1 })
	both.Stop()
	f.eventually("it has the new content", func() bool {
		return early.Replicas(0) == 0 && early.Replicas(1) == 0 && late.Replicas(0) == 1
	})
	next.Stop()
	f.eventually("it has none", func() bool { return late.Replicas(0) == 0 })
}

// Leave withdraws everything of all inputs, without the end of the session.
func testLeave(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	a, _ := f.node("a")
	b, _ := f.node("b")
	f.join(a, b)
	var left []version.Following
	for _, in := range []content.Input{x.Input, y.Input, input("2", "x")} {
		v := serve(a, in, 0, 1)
		v.Report([]byte("report"))
		left = append(left, v)
	}
	onB := b.Follow(t.Context(), "db", x.Input)
	onB.SetDivision(x.Division, 2)
	f.eventually("all is there", func() bool { return len(onB.Elsewhere()) == 2 && onB.Replicas(1) == 1 && len(b.Members()) == 2 })
	a.Leave()
	for _, v := range left {
		v.Advertise(0)
		v.Report([]byte("late"))
		v.Withdraw(1) // another input may have the same partition
	}
	if s := a.Status(); s.Published+s.Pending > 0 {
		t.Errorf("after Leave: %+v", s)
	}
	f.eventually("nothing is left", func() bool {
		reports, known := onB.Reports()
		return len(onB.Elsewhere()) == 0 && onB.Replicas(1) == 0 && known && len(reports) == 0 && len(b.Members()) == 1
	})
	after := a.Follow(t.Context(), "db", input("3", "x"))
	after.SetDivision(x.Division, 2)
	after.Advertise(0)
	if s := a.Status(); s.Published+s.Pending > 0 {
		t.Errorf("of an input that is followed after Leave: %+v", s)
	}
}

// A change of one database's znodes does not name the others: what wakes them costs a node with many databases much.
func testChanges(t *testing.T, server string) {
	cluster := newTestCluster(t, server, nil)
	a, _ := cluster.node("a")
	b, _ := cluster.node("b")
	cluster.join(a, b)
	b.Follow(t.Context(), "other", x.Input).SetDivision(x.Division, 1)
	a.Follow(t.Context(), "other", x.Input)
	onA, onB := hold(a, 10_000), hold(b, 10_000)
	timeout := time.After(deadline)
	p := -1
	cluster.eventually("what has changed is one database", func() bool {
		p++
		onB.Advertise(p)
		changed := make(map[string]bool)
		for onA.Replicas(p) == 0 || !changed["db"] {
			select {
			case names := <-a.Changes():
				maps.Copy(changed, names)
			case <-timeout:
				t.Fatalf("partition %d was advertised, and %v received", p, changed)
			}
		}
		return cmp.Equal(changed, map[string]bool{"db": true})
	})
}
