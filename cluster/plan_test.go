//go:build integration

package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/version"
	"sequins/zk"
)

// Replicas by another plan are neither counted nor peers; those without a plan
// are, as are all while this node has no plan.
func TestReplicasByPlan(t *testing.T) {
	entries := []zk.Entry{
		{Name: "00000@a:1", Data: partitionData{Plan: "x"}.encode()},
		{Name: "00000@b:1", Data: partitionData{Plan: "y"}.encode()},
		{Name: "00000@old:1"},
		{Name: "00000@new:1", Data: []byte(`{"records": 7}`)},
		{Name: "00000@newer:1", Data: []byte(`{"records": 7, "plan": "x"}`)},
		{Name: "00001@b:1", Data: partitionData{Plan: "y"}.encode()},
		{Name: "00001@both:1", Data: partitionData{Plan: "w", Also: []string{"x"}}.encode()},
		{Name: "00002@odd:1", Data: []byte("{")},
		{Name: "00002@odd2:1", Data: []byte(`{"plan": 7}`)},
		{Name: "00002@large:1", Data: []byte(`{"plan": "` + strings.Repeat("x", maxPartitionData) + `"}`)},
	}
	for plan, want := range map[string][][]string{
		"":  {{"a:1", "b:1", "old:1", "new:1", "newer:1"}, {"b:1", "both:1"}},
		"w": {{"old:1", "new:1"}, {"both:1"}},
		"x": {{"a:1", "old:1", "new:1", "newer:1"}, {"both:1"}},
		"y": {{"b:1", "old:1", "new:1"}, {"b:1"}},
		"z": {{"old:1", "new:1"}},
	} {
		r := parseReplicas(entries, "me:1", plan)
		if diff := cmp.Diff(want, r.byPartition); diff != "" {
			t.Errorf("plan %q: %s", plan, diff)
		}
		if r.malformed == "" || !r.others[holding{2, "odd:1"}] {
			t.Errorf("plan %q: malformed %q, others %v", plan, r.malformed, r.others)
		}
	}
}

// A node that has changed to another plan is not a peer, unlike one that has lost
// ZooKeeper.
func TestOtherPlanIsNotVanished(t *testing.T) {
	dir := &fakeDirectory{}
	f := &following{c: &Cluster{o: Options{Addr: "me:1"}}, children: dir, plan: "x"}
	f.view.Store(new(view))
	for _, step := range []struct {
		data  []byte
		gone  bool
		asked bool
	}{{data: partitionData{Plan: "x"}.encode(), asked: true}, {gone: true, asked: true}, {data: partitionData{Plan: "y"}.encode()}, {gone: true}} {
		dir.entries = []zk.Entry{{Name: "00000@a:1", Data: step.data}}
		if step.gone {
			dir.entries = nil
		}
		f.update()
		if asked := slices.Contains(at(f.view.Load().peers, 0), "a:1"); asked != step.asked {
			t.Errorf("%+v: asked %v", step, asked)
		}
	}
}

// fakeDirectory has entries that tests set.
type fakeDirectory struct {
	entries []zk.Entry
	read    func() // called by Entries after reading the entries
}

func (d *fakeDirectory) Entries() []zk.Entry {
	entries := d.entries
	if d.read != nil {
		d.read()
	}
	return entries
}
func (*fakeDirectory) Changes() <-chan struct{} { return nil }
func (*fakeDirectory) Seen() <-chan struct{}    { return nil }
func (*fakeDirectory) Stop()                    {}

// Of two concurrent updates, the one with the newer znodes is stored.
func TestOldViewLoses(t *testing.T) {
	old, newest := []zk.Entry{{Name: "00000@old:1"}}, []zk.Entry{{Name: "00000@new:1"}}
	dir := &fakeDirectory{entries: old}
	f := &following{c: &Cluster{o: Options{Addr: "me:1"}}, children: dir}
	f.view.Store(new(view))
	second := make(chan struct{})
	dir.read = func() { // the first update has read the old entries
		dir.entries, dir.read = newest, nil
		go func() {
			f.update()
			close(second)
		}()
		if f.updating.TryLock() { // nothing blocks the second update now
			f.updating.Unlock()
			<-second
		}
	}
	f.update()
	<-second
	if got := at(f.view.Load().replicas, 0); !slices.Equal(got, []string{"new:1"}) {
		t.Errorf("after an update with the newest znodes, the view is of %q", got)
	}
}

// Queries change nothing: status pages call them, too.
func TestQueriesChangeNothing(t *testing.T) {
	testCluster := newTestCluster(t, "127.0.0.1:1", nil)
	c, _ := testCluster.node("a")
	f := c.follow(key{"db", "1"})
	held := []bool{true, true}
	query := func() {
		f.Owned(held)
		f.Missing(held, 1)
		f.Surplus(held)
		f.Replicas(0)
		f.Peers(0)
		f.OtherPlans()
		f.Refuted()
	}
	query()
	if f.division != nil || f.sufficed || len(f.held) > 0 {
		t.Errorf("a query divided a version (%v), set sufficed (%v) or held (%v)", f.division, f.sufficed, f.held)
	}
	f.SetPlan("plan", held)
	division := f.division
	query()
	if f.division != division || f.sufficed {
		t.Errorf("a query divided a version again (%v) or set sufficed (%v)", f.division != division, f.sufficed)
	}
	if diff := cmp.Diff([]int{0, 1}, f.Owned(held)); diff != "" {
		t.Error(diff)
	}
	f.Advertise(0)
	f.Advertise(1)
	f.Switched()
	if !f.sufficed {
		t.Error("the advertised replicas are not recorded")
	}
}

// A version is followed until Stop, however often Follow is called. Nothing is published after that.
func TestStop(t *testing.T) {
	c, _ := newTestCluster(t, "127.0.0.1:1", nil).node("a")
	f := c.follow(key{"db", "1"})
	if c.follow(key{"db", "1"}) != f {
		t.Error("a version is followed twice")
	}
	f.Advertise(0)
	f.Stop()
	f.Advertise(1)
	f.Refute("string")
	f.Stop()
	if len(f.advertised)+len(c.revisions)+len(c.refuted) > 0 {
		t.Errorf("after Stop: advertised %v, followed %v, refuted %v", f.advertised, c.revisions, c.refuted)
	}
	if c.follow(key{"db", "1"}) == f {
		t.Error("a version is not followed again")
	}
}

// Nodes with different plans for a version do not count each other until the
// plans are equal.
func testPlans(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	ca, _ := f.node("a")
	cb, _ := f.node("b")
	cold, _ := f.node("old")
	f.join(ca, cb, cold)
	held := make([]bool, 3)
	a, b, old := ca.Follow(t.Context(), "db", "1"), cb.Follow(t.Context(), "db", "1"), cold.Follow(t.Context(), "db", "1")
	advertise := func(v version.Following) {
		for p := range held {
			v.Advertise(p)
		}
	}
	advertise(old) // without a plan, like an older release
	b.SetPlan("part", held)
	advertise(b)
	f.eventually("before a has a plan, all count", func() bool { return a.Replicas(2) == 2 })
	a.SetPlan("whole", held)
	if n := a.Replicas(2); n != 1 {
		t.Errorf("%d replicas count", n)
	}
	if diff := cmp.Diff([]string{"part"}, a.OtherPlans()); diff != "" {
		t.Errorf("other plans: %s", diff)
	}
	if diff := cmp.Diff([]string{"old:1"}, a.Peers(2)); diff != "" {
		t.Errorf("peers: %s", diff)
	}
	if diff := cmp.Diff([]int{0, 1, 2}, a.Missing(held, 2)); diff != "" {
		t.Errorf("missing: %s", diff)
	}
	advertise(a)
	b.SetPlan("whole", held) // planned again
	f.eventually("b counts a", func() bool { return b.Replicas(1) == 2 })
	if n := a.Replicas(2); n != 1 {
		t.Errorf("b holds nothing by its new plan yet, and counts: %d", n)
	}
	advertise(b)
	f.eventually("a counts b", func() bool { return len(a.Missing(held, 3)) == 0 || a.Replicas(2) == 2 })
	if got := a.Peers(0); len(got) != 2 {
		t.Errorf("peers: %q", got)
	}
	f.eventually("no other plan is left", func() bool { return len(a.OtherPlans()) == 0 })
	b.SetPlan("other", held)
	advertise(b) // the same names with other data
	f.eventually("a has noticed", func() bool {
		return a.Replicas(0)+a.Replicas(1)+a.Replicas(2) == 3
	})
	if diff := cmp.Diff([]string{"old:1"}, a.Peers(2)); diff != "" {
		t.Errorf("peers: %s", diff)
	}
}

// A node that holds two revisions of a version is a replica by the plans of both, until it stops following one.
func testRevisions(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	cBoth, _ := f.node("both")
	cEarly, _ := f.node("early")
	cLate, _ := f.node("late")
	f.join(cBoth, cEarly, cLate)
	follow := func(c *Cluster, id, plan string) version.Following {
		v := c.Follow(t.Context(), "db", id)
		v.SetPlan(plan, make([]bool, 2))
		return v
	}
	both, early, late := follow(cBoth, "1", "old"), follow(cEarly, "1", "old"), follow(cLate, "1", "new")
	both.Advertise(0)
	both.Advertise(1)
	both.Refute("hadoop")
	f.eventually("it has the old plan", func() bool { return early.Replicas(1) == 1 && len(late.OtherPlans()) == 1 })
	revision := follow(cBoth, "1#00001", "new")
	revision.Advertise(0)
	f.eventually("it has both plans of partition 0", func() bool {
		return early.Replicas(0) == 1 && late.Replicas(0) == 1 && len(early.OtherPlans()) == 1
	})
	if early.Replicas(1) != 1 || late.Replicas(1) != 0 {
		t.Errorf("of partition 1 there are %d and %d", early.Replicas(1), late.Replicas(1))
	}
	late.Advertise(1)
	f.eventually("a revision counts those who have no other", func() bool { return revision.Replicas(1) == 1 && both.Replicas(1) == 0 })
	both.Stop()
	f.eventually("it has the new plan", func() bool {
		return early.Replicas(0) == 0 && early.Replicas(1) == 0 && late.Replicas(0) == 1
	})
	if diff := cmp.Diff([]string{"hadoop"}, revision.Refuted()); diff != "" {
		t.Errorf("refuted: %s", diff)
	}
	revision.Stop()
	f.eventually("it has none", func() bool { return late.Replicas(0) == 0 })
	if got := both.Refuted(); len(got) > 0 || len(cBoth.revisions) > 0 {
		t.Errorf("refuted: %q; revisions of %d versions", got, len(cBoth.revisions))
	}
}

// What one node has refuted all others learn, until Stop.
func testRefuted(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	ca, _ := f.node("a")
	cb, _ := f.node("b")
	f.join(ca, cb)
	a, b := ca.Follow(t.Context(), "db", "1"), cb.Follow(t.Context(), "db", "1")
	refuted := func(v version.Following, want ...string) func() bool {
		return func() bool { return slices.Equal(v.Refuted(), want) }
	}
	a.Refute("hadoop")
	if !refuted(a, "hadoop")() {
		t.Error("a does not list what it has refuted")
	}
	f.eventually("b knows", refuted(b, "hadoop"))
	b.Refute("hadoop")
	b.Refute("cascading")
	f.eventually("a knows of both", refuted(a, "cascading", "hadoop"))
	if got := ca.Follow(t.Context(), "db", "2").Refuted(); len(got) > 0 {
		t.Errorf("of another version, refuted is %q", got)
	}
	select {
	case <-ca.Changes():
	default:
		t.Error("no change was announced")
	}
	if len(ca.Problems())+len(cb.Problems()) > 0 || len(ca.Members()) != 2 {
		t.Errorf("problems %q, %q; members %v", ca.Problems(), cb.Problems(), ca.Members())
	}
	b.Stop()
	f.eventually("b has forgotten", refuted(a, "hadoop"))
	a.Stop()
	f.eventually("no node lists it", refuted(b))
	name := strings.Repeat("x", 1000)
	for i := range 100 {
		ca.Follow(t.Context(), "db", strings.Repeat("1", i+1)).Refute(name)
	}
	f.eventually("a publishes what fits", func() bool { return len(b.Refuted()) == 1 })
	if n := len(ca.refuted); n < 20 || n > 40 {
		t.Errorf("%d are published", n)
	}
}
