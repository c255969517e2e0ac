//go:build integration

package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"sequins/shard"
	"sequins/test/expect"
	"sequins/zk"
)

// newFollowers returns a cluster whose nodes follow its rule.
func newFollowers(t *testing.T, server string) *testCluster {
	return newTestCluster(t, server, func(o *Options) { o.Settings.Assignment = "" })
}

// ruleOf returns the rule by which a node assigns partitions.
func ruleOf(c *Cluster) shard.Assignment { return c.members.Load().rule }

// shardsOf returns the shard ids that a node assigns partitions to.
func shardsOf(c *Cluster) string {
	var ids []string
	for _, s := range c.members.Load().shards {
		ids = append(ids, s.ShardID)
	}
	return strings.Join(ids, " ")
}

// listed returns the rules in ZooKeeper, see names.
func (f *testCluster) listed() func() string { return f.names(zk.AssignmentDir) }

// names returns the names in a directory of ZooKeeper, as a session of its own sees them, or "unknown".
func (f *testCluster) names(dir string) func() string {
	var shown atomic.Value
	session := zk.Connect(zk.Options{
		Servers: []string{f.server}, ConnectTimeout: time.Second, SessionTimeout: long, Root: f.root(), Logger: slog.New(slog.DiscardHandler),
	})
	f.t.Cleanup(func() { session.Close() })
	view := session.Watch(dir, func(entries []zk.Entry) {
		var names []string
		for _, e := range entries {
			names = append(names, e.Name)
		}
		shown.Store(strings.Join(names, " "))
	})
	return func() string {
		if !view.Current() {
			return "unknown"
		}
		return shown.Load().(string)
	}
}

// operator is a client of ZooKeeper that changes rules.
type operator struct {
	*gozk.Conn
	f *testCluster
}

func (f *testCluster) operator() operator {
	f.t.Helper()
	conn, events, err := gozk.Connect([]string{f.server}, long, gozk.WithLogInfo(false))
	expect.NoError(f.t, err)
	f.t.Cleanup(func() {
		conn.Close()
		for range events {
		}
	})
	return operator{conn, f}
}

// create creates the znode of a rule, and its directories.
func (o operator) create(rule string) {
	o.f.t.Helper()
	path := ""
	for name := range strings.SplitSeq(o.f.root()[1:]+"/"+zk.AssignmentPath(rule), "/") {
		path += "/" + name
		if _, err := o.Create(path, nil, 0, gozk.WorldACL(gozk.PermAll)); err != nil && !errors.Is(err, gozk.ErrNodeExists) {
			o.f.t.Fatalf("%s: %v", path, err)
		}
	}
}

func (o operator) delete(rule string) {
	o.f.t.Helper()
	if err := o.Delete(o.f.root()+"/"+zk.AssignmentPath(rule), -1); err != nil {
		o.f.t.Fatal(err)
	}
}

// upstream publishes a node as the original sequins does, without settings, and returns a function that withdraws it.
func (f *testCluster) upstream(id string) (stop func()) {
	f.t.Helper()
	c, _ := f.node(id)
	path := zk.NodePath(id, id+":1")
	c.o.Session.Publish(path, nil)
	f.flush(c)
	return func() {
		c.o.Session.Unpublish(path)
		f.flush(c)
	}
}

func (f *testCluster) flush(c *Cluster) {
	f.t.Helper()
	f.eventually("ZooKeeper has what is published", func() bool { st := c.Status(); return st.State == zk.Connected && st.Pending == 0 })
}

// The first node creates the rule, which the others follow, also after all have restarted and whoever joins.
func testRule(t *testing.T, server string) {
	f := newFollowers(t, server)
	a, stopA := f.node("a")
	if got := ruleOf(a); got != "" {
		t.Errorf("before it has joined, it divides by %s", got)
	}
	f.join(a)
	listed := f.listed()
	f.eventually("the rule is created", func() bool { return listed() == "balanced" })
	b, _ := f.node("b")
	f.options = func(o *Options) { o.Settings.Assignment, o.Router = "", true }
	r, _ := f.node("router")
	f.join(b, r)
	for _, c := range []*Cluster{a, b, r} {
		if got := ruleOf(c); got != shard.Balanced || len(c.Problems()) > 0 {
			t.Errorf("%s divides by %s; problems %q", c.o.Addr, got, c.Problems())
		}
	}
	stopA()
	b.Leave()
	f.upstream("old")
	f.options = func(o *Options) { o.Settings.Assignment = "" }
	c, _ := f.node("c")
	f.join(c)
	if got := ruleOf(c); got != shard.Balanced {
		t.Errorf("when all have restarted, it divides by %s", got)
	}
}

// The first rule that a node learns does not begin its wait for quiet members anew; another one does.
func testFirstRule(t *testing.T, server string) {
	c, _ := newFollowers(t, server).node("a")
	began := c.members.Load().since
	for rule, want := range []bool{true, false} {
		c.updateRule([]zk.Entry{{Name: []string{"balanced", "round_robin"}[rule]}})
		if got := c.members.Load().since.Equal(began); got != want {
			t.Errorf("with rule %s, the wait goes on: %v", ruleOf(c), got)
		}
	}
}

// A router follows the rule, and leaves it to nodes that hold partitions to create it. So do nodes whose settings name a rule.
func testRuleOfOthers(t *testing.T, server string) {
	for name, options := range map[string]func(*Options){
		"router": func(o *Options) { o.Settings.Assignment, o.Router = "", true },
		"named":  func(o *Options) { o.Settings.Assignment = shard.Balanced },
	} {
		f := newTestCluster(t, server, options)
		first, stop := f.node(name)
		f.join(first)
		f.flush(first)
		listed := f.listed()
		f.eventually("nothing is created", func() bool { return listed() == "" })
		f.operator().create("round_robin")
		f.eventually("the rule is known", func() bool { first.mu.Lock(); defer first.mu.Unlock(); return first.rule == shard.RoundRobin })
		if got, want := ruleOf(first), cmp.Or(first.o.Settings.Assignment, shard.RoundRobin); got != want {
			t.Errorf("%s divides by %s, want %s", name, got, want)
		}
		f.operator().delete("round_robin")
		f.eventually("it is gone", func() bool { return listed() == "" })
		stop()
	}
}

// Nodes of upstream's kind that were there first make all divide as they do.
func testUpstreamFirst(t *testing.T, server string) {
	f := newFollowers(t, server)
	stop := f.upstream("old")
	a, _ := f.node("a")
	f.join(a)
	listed := f.listed()
	f.eventually("the rule is created", func() bool { return listed() == "round_robin" })
	if got := shardsOf(a); ruleOf(a) != shard.RoundRobin || got != "a old" || len(a.Problems()) > 0 {
		t.Errorf("it divides by %s among %s; problems %q", ruleOf(a), got, a.Problems())
	}
	stop()
	f.eventually("it has left", func() bool { return shardsOf(a) == "a" })
	b, _ := f.node("b")
	f.join(b)
	if got := ruleOf(b); got != shard.RoundRobin {
		t.Errorf("when it has left, nodes that join divide by %s", got)
	}
	// Once all nodes are new, the cluster is given the other rule.
	o := f.operator()
	o.create("balanced")
	o.delete("round_robin")
	f.eventually("all follow", func() bool {
		return ruleOf(a) == shard.Balanced && ruleOf(b) == shard.Balanced && listed() == "balanced"
	})
}

// Nodes of upstream's kind that come later get no share, and are a problem while they are there.
func testUpstreamLater(t *testing.T, server string) {
	f := newFollowers(t, server)
	a, _ := f.node("a")
	b, _ := f.node("b")
	f.join(a, b)
	before := slices.Clone(a.Follow(t.Context(), "db", x.Input).Owned(12))
	stop := f.upstream("old")
	said := func(c *Cluster, n int) func() bool {
		return func() bool {
			return len(c.Problems()) == n && (n == 0 || strings.Contains(c.Problems()[0], "node old:1 (shard old) is of the original sequins"))
		}
	}
	f.eventually("a says so", said(a, 1))
	f.eventually("b says so", said(b, 1))
	c, _ := f.node("c")
	f.join(c)
	f.eventually("c says so", said(c, 1))
	if got := shardsOf(c); got != "a b c" || ruleOf(c) != shard.Balanced || !c.Mixed() {
		t.Errorf("c divides by %s among %s", ruleOf(c), got)
	}
	c.Leave()
	f.eventually("c has left", func() bool { return shardsOf(a) == "a b" })
	if got := a.Follow(t.Context(), "db", x.Input).Owned(12); !slices.Equal(got, before) {
		t.Errorf("a had to hold %v, and with the original sequins %v", before, got)
	}
	stop()
	f.eventually("it is resolved", said(a, 0))
}

// A rule that somebody deletes is created again; another one is followed, with one line in the log. Of two, round_robin counts.
func testRuleChanges(t *testing.T, server string) {
	f := newFollowers(t, server)
	a, _ := f.node("a")
	var lines atomic.Int64
	a.log = slog.New(slog.NewTextHandler(writing(func(line string) {
		if strings.Contains(line, "rule of assignment has changed") {
			lines.Add(1)
		}
	}), nil))
	f.join(a)
	listed, o := f.listed(), f.operator()
	f.eventually("the rule is created", func() bool { return listed() == "balanced" })
	o.create("nonsense")
	f.eventually("it has listed them", func() bool { return len(a.Problems()) == 1 })
	o.delete("nonsense")
	f.eventually("it has listed the rule alone", func() bool { return len(a.Problems()) == 0 })
	o.delete("balanced")
	f.eventually("it is created again", func() bool {
		exists, _, err := o.Exists(f.root() + "/" + zk.AssignmentPath("balanced"))
		return exists && err == nil
	})
	if ruleOf(a) != shard.Balanced || lines.Load() > 0 {
		t.Errorf("it follows %s, with %d lines", ruleOf(a), lines.Load())
	}
	o.create("round_robin")
	f.eventually("it is followed", func() bool { return ruleOf(a) == shard.RoundRobin })
	o.delete("balanced")
	f.eventually("one is left", func() bool { return listed() == "round_robin" })
	if ruleOf(a) != shard.RoundRobin || lines.Load() != 1 {
		t.Errorf("it follows %s, with %d lines", ruleOf(a), lines.Load())
	}
}

// A rule that a node does not know is a problem, and neither followed nor replaced.
func testUnknownRule(t *testing.T, server string) {
	f := newFollowers(t, server)
	o := f.operator()
	o.create(strings.Repeat("?", 1000))
	a, _ := f.node("a")
	f.join(a)
	f.flush(a)
	listed := f.listed()
	if got := ruleOf(a); got != shard.Balanced || len(a.Problems()) != 1 || len(a.Problems()[0]) > 400 {
		t.Errorf("it divides by %s; problems %q", got, a.Problems())
	}
	f.eventually("nothing else is created", func() bool { return listed() == strings.Repeat("?", 1000) })
	o.create("round_robin")
	f.eventually("a rule that it knows counts", func() bool { return ruleOf(a) == shard.RoundRobin && len(a.Problems()) == 1 })
	o.delete("round_robin")
	f.eventually("the other one is left", func() bool { return listed() == strings.Repeat("?", 1000) })
	if got := ruleOf(a); got != shard.RoundRobin {
		t.Errorf("it knew a rule, and divides by %s", got)
	}
	o.delete(strings.Repeat("?", 1000))
	f.eventually("it creates the one that it follows", func() bool { return listed() == "round_robin" && len(a.Problems()) == 0 })
}

// A node whose settings name a rule divides by it. All say so if the cluster has another one.
func testNamedRule(t *testing.T, server string) {
	f := newFollowers(t, server)
	a, _ := f.node("a")
	f.join(a)
	named := func(id string, rule shard.Assignment) *Cluster {
		f.options = func(o *Options) { o.Settings.Assignment = rule }
		c, _ := f.node(id)
		f.join(c)
		return c
	}
	same := named("same", shard.Balanced)
	f.eventually("they know each other", func() bool { return len(a.Members()) == 2 })
	if len(a.Problems())+len(same.Problems()) > 0 {
		t.Errorf("with the same rule: %q, %q", a.Problems(), same.Problems())
	}
	other := named("other", shard.RoundRobin)
	const says = "has sharding.assignment %s, and this node %s"
	f.eventually("a says so", func() bool {
		return len(a.Problems()) == 1 && strings.Contains(a.Problems()[0], fmt.Sprintf(says, "round_robin", "balanced"))
	})
	f.eventually("the other one says so", func() bool {
		return len(other.Problems()) == 2 && strings.Contains(other.Problems()[0], fmt.Sprintf(says, "balanced", "round_robin"))
	})
	if ruleOf(other) != shard.RoundRobin || ruleOf(a) != shard.Balanced {
		t.Errorf("they divide by %s and %s", ruleOf(other), ruleOf(a))
	}
}

// The first node without a rule of its own, among others that divide by round_robin, makes that the cluster's.
func testRuleBesideNamed(t *testing.T, server string) {
	f := newFollowers(t, server)
	f.options = func(o *Options) { o.Settings.Assignment = shard.RoundRobin }
	named, _ := f.node("named")
	f.join(named)
	f.options = nil
	a, _ := f.node("a")
	a.o.Settings.Assignment = ""
	a.o.MinNodes = 2
	f.join(a)
	if ruleOf(a) != shard.RoundRobin || len(a.Problems()) > 0 {
		t.Errorf("it divides by %s: %q", ruleOf(a), a.Problems())
	}
}
