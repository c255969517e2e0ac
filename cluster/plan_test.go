//go:build integration

package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	f := &following{advertised: map[int]bool{}, plan: "x"}
	f.view.Store(new(view))
	dir := &fakeDirectory{}
	f.children = dir
	c := &Cluster{o: Options{Addr: "me:1"}}
	for _, step := range []struct {
		data  []byte
		gone  bool
		asked bool
	}{{data: partitionData{Plan: "x"}.encode(), asked: true}, {gone: true, asked: true}, {data: partitionData{Plan: "y"}.encode()}, {gone: true}} {
		dir.entries = []zk.Entry{{Name: "00000@a:1", Data: step.data}}
		if step.gone {
			dir.entries = nil
		}
		c.update(f)
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
	f := &following{advertised: map[int]bool{}}
	f.view.Store(new(view))
	old, newest := []zk.Entry{{Name: "00000@old:1"}}, []zk.Entry{{Name: "00000@new:1"}}
	dir := &fakeDirectory{entries: old}
	f.children = dir
	c := &Cluster{o: Options{Addr: "me:1"}}
	second := make(chan struct{})
	dir.read = func() { // the first update has read the old entries
		dir.entries, dir.read = newest, nil
		go func() {
			c.update(f)
			close(second)
		}()
		if f.updating.TryLock() { // nothing blocks the second update now
			f.updating.Unlock()
			<-second
		}
	}
	c.update(f)
	<-second
	if got := at(f.view.Load().replicas, 0); !slices.Equal(got, []string{"new:1"}) {
		t.Errorf("after an update with the newest znodes, the view is of %q", got)
	}
}

// Queries change nothing: status pages call them, too.
func TestQueriesChangeNothing(t *testing.T) {
	testCluster := newTestCluster(t, "127.0.0.1:1", nil)
	c, _ := testCluster.node("a")
	k := key{"db", "1"}
	held := []bool{true, true}
	query := func() {
		c.Owned("db", "1", held)
		c.Missing("db", "1", held, 1)
		c.Surplus("db", "1", held)
		c.Replicas("db", "1", 0)
		c.Peers("db", "1", 0)
		c.Refuted("db", "1")
	}
	query()
	if f := c.find(k.db, k.version); f != nil {
		t.Error("a query follows a version")
	}
	f := c.follow(k)
	query()
	if f.division != nil || f.sufficed {
		t.Errorf("a query divided a version (%v) or set sufficed (%v)", f.division, f.sufficed)
	}
	c.SetPlan("db", "1", "plan", held)
	division := f.division
	query()
	if f.division != division || f.sufficed {
		t.Errorf("a query divided a version again (%v) or set sufficed (%v)", f.division != division, f.sufficed)
	}
	if diff := cmp.Diff([]int{0, 1}, c.Owned("db", "1", held)); diff != "" {
		t.Error(diff)
	}
	c.Advertise("db", "1", 0)
	c.Advertise("db", "1", 1)
	c.Switched("db", "1")
	if !f.sufficed {
		t.Error("the advertised replicas are not recorded")
	}
}

// Nodes with different plans for a version do not count each other until the
// plans are equal.
func testPlans(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	a, _ := f.node("a")
	b, _ := f.node("b")
	old, _ := f.node("old")
	f.join(a, b, old)
	held := make([]bool, 3)
	for _, c := range []*Cluster{a, b, old} {
		c.Follow(t.Context(), "db", "1")
	}
	advertise := func(c *Cluster) {
		for p := range held {
			c.Advertise("db", "1", p)
		}
	}
	advertise(old) // without a plan, like an older release
	b.SetPlan("db", "1", "part", held)
	advertise(b)
	f.eventually("before a has a plan, all count", func() bool { return a.Replicas("db", "1", 2) == 2 })
	a.SetPlan("db", "1", "whole", held)
	if n := a.Replicas("db", "1", 2); n != 1 {
		t.Errorf("%d replicas count", n)
	}
	if diff := cmp.Diff([]string{"part"}, a.OtherPlans("db", "1")); diff != "" {
		t.Errorf("other plans: %s", diff)
	}
	if diff := cmp.Diff([]string{"old:1"}, a.Peers("db", "1", 2)); diff != "" {
		t.Errorf("peers: %s", diff)
	}
	if diff := cmp.Diff([]int{0, 1, 2}, a.Missing("db", "1", held, 2)); diff != "" {
		t.Errorf("missing: %s", diff)
	}
	advertise(a)
	b.SetPlan("db", "1", "whole", held) // planned again
	f.eventually("b counts a", func() bool { return b.Replicas("db", "1", 1) == 2 })
	if n := a.Replicas("db", "1", 2); n != 1 {
		t.Errorf("b holds nothing by its new plan yet, and counts: %d", n)
	}
	advertise(b)
	f.eventually("a counts b", func() bool { return len(a.Missing("db", "1", held, 3)) == 0 || a.Replicas("db", "1", 2) == 2 })
	if got := a.Peers("db", "1", 0); len(got) != 2 {
		t.Errorf("peers: %q", got)
	}
	f.eventually("no other plan is left", func() bool { return len(a.OtherPlans("db", "1")) == 0 })
	b.SetPlan("db", "1", "other", held)
	advertise(b) // the same names with other data
	f.eventually("a has noticed", func() bool {
		return a.Replicas("db", "1", 0)+a.Replicas("db", "1", 1)+a.Replicas("db", "1", 2) == 3
	})
	if diff := cmp.Diff([]string{"old:1"}, a.Peers("db", "1", 2)); diff != "" {
		t.Errorf("peers: %s", diff)
	}
}

// A node that holds two revisions of a version is a replica by the plans of both, until it forgets one.
func testRevisions(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	both, _ := f.node("both")
	early, _ := f.node("early")
	late, _ := f.node("late")
	f.join(both, early, late)
	held := make([]bool, 2)
	follow := func(c *Cluster, id, plan string) {
		c.Follow(t.Context(), "db", id)
		c.SetPlan("db", id, plan, held)
	}
	follow(both, "1", "old")
	follow(early, "1", "old")
	follow(late, "1", "new")
	both.Advertise("db", "1", 0)
	both.Advertise("db", "1", 1)
	both.Refute("db", "1", "hadoop")
	f.eventually("it has the old plan", func() bool { return early.Replicas("db", "1", 1) == 1 && len(late.OtherPlans("db", "1")) == 1 })
	follow(both, "1+00001", "new")
	both.Advertise("db", "1+00001", 0)
	f.eventually("it has both plans of partition 0", func() bool {
		return early.Replicas("db", "1", 0) == 1 && late.Replicas("db", "1", 0) == 1 && len(early.OtherPlans("db", "1")) == 1
	})
	if early.Replicas("db", "1", 1) != 1 || late.Replicas("db", "1", 1) != 0 {
		t.Errorf("of partition 1 there are %d and %d", early.Replicas("db", "1", 1), late.Replicas("db", "1", 1))
	}
	late.Advertise("db", "1", 1)
	f.eventually("a revision counts those who have no other", func() bool { return both.Replicas("db", "1+00001", 1) == 1 && both.Replicas("db", "1", 1) == 0 })
	both.Forget("db", "1")
	f.eventually("it has the new plan", func() bool {
		return early.Replicas("db", "1", 0) == 0 && early.Replicas("db", "1", 1) == 0 && late.Replicas("db", "1", 0) == 1
	})
	if diff := cmp.Diff([]string{"hadoop"}, both.Refuted("db", "1+00001")); diff != "" {
		t.Errorf("refuted: %s", diff)
	}
	both.Forget("db", "1+00001")
	f.eventually("it has none", func() bool { return late.Replicas("db", "1", 0) == 0 })
	if got := both.Refuted("db", "1"); len(got) > 0 || len(both.revisions) > 0 {
		t.Errorf("refuted: %q; revisions of %d versions", got, len(both.revisions))
	}
}

// What one node has refuted all others learn, until Forget.
func testRefuted(t *testing.T, server string) {
	f := newTestCluster(t, server, nil)
	a, _ := f.node("a")
	b, _ := f.node("b")
	f.join(a, b)
	refuted := func(c *Cluster, want ...string) func() bool {
		return func() bool { return slices.Equal(c.Refuted("db", "1"), want) }
	}
	a.Refute("db", "1", "hadoop")
	if !refuted(a, "hadoop")() {
		t.Error("a does not list what it has refuted")
	}
	f.eventually("b knows", refuted(b, "hadoop"))
	b.Refute("db", "1", "hadoop")
	b.Refute("db", "1", "cascading")
	f.eventually("a knows of both", refuted(a, "cascading", "hadoop"))
	if got := a.Refuted("db", "2"); len(got) > 0 {
		t.Errorf("of another version, refuted is %q", got)
	}
	select {
	case <-a.Changes():
	default:
		t.Error("no change was announced")
	}
	if len(a.Problems())+len(b.Problems()) > 0 || len(a.Members()) != 2 {
		t.Errorf("problems %q, %q; members %v", a.Problems(), b.Problems(), a.Members())
	}
	b.Forget("db", "1")
	f.eventually("b has forgotten", refuted(a, "hadoop"))
	a.Forget("db", "1")
	f.eventually("no node lists it", refuted(b))
	name := strings.Repeat("x", 1000)
	for i := range 100 {
		a.Refute("db", strings.Repeat("1", i+1), name)
	}
	f.eventually("a publishes what fits", func() bool { return len(b.Refuted("db", "1")) == 1 })
	if n := len(a.refuted); n < 20 || n > 40 {
		t.Errorf("%d are published", n)
	}
}
