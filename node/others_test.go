package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sequins/observe/status"
	"sequins/source"
	"sequins/store"
	"sequins/test/expect"
	"sequins/version"
	"sequins/version/gate"
	"sequins/version/report"
)

// Files of a version that is served have been deleted from the source: it is served on, and problems say so. A node that has nothing of it takes the
// manifest and the blocks from one that has, whether it asks what others serve at its start or learns of it later.
func TestSubsetOfServed(t *testing.T) {
	for name, later := range map[string]bool{"at the start": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.put("fruit", "1", 3, fruit...)
			a := f.run(in(newCluster()))
			a.serves("fruit", "1")
			served := a.Set([]byte("fruit")).Current()
			f.remove("fruit", "1", "part-r-00001")
			a.Refresh()
			a.look()
			g, peer := a.beside()
			b := g.run(peer, func(o *Options) {
				o.FromPeers = true
				if later {
					o.Server.Peers = func() []status.Peer { return nil }
				}
			})
			b.serves("fruit", "1")
			b.eventually("it has all blocks", func() bool { return len(b.onNode("fruit", "1").Partitions) == 3 })
			a.stop()
			b.readsAll()
			if got := b.Set([]byte("fruit")).Current(); got != served || g.manifest("fruit", "1").Content() != served {
				t.Errorf("it serves %+v, and the other one %+v", got, served)
			}
		})
	}
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.RefreshPeriod = time.Minute })
		time.Sleep(time.Second)
		served := n.Set([]byte("fruit")).Current()
		f.remove("fruit", "1", "part-r-00001")
		n.Refresh()
		time.Sleep(5 * time.Minute)
		problems := n.Status().Problems
		if n.Set([]byte("fruit")).Current() != served || f.log.count("load started") != 1 || len(problems) != 1 ||
			!strings.Contains(problems[0], "have been deleted from the source") {
			t.Errorf("%d loads, problems %q", f.log.count("load started"), problems)
		}
	})
}

// No node gives a content of which the source has a part: the rest is loaded as an input of its own.
func TestSubsetOfNothing(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	f.remove("fruit", "1", "part-r-00001")
	c := newCluster()
	c.other("1", "the whole")
	r := f.run(in(c))
	r.serves("fruit", "1")
	if m := f.manifest("fruit", "1"); len(m.Files) != 2 {
		t.Errorf("loaded from %d files", len(m.Files))
	}
}

// Another node serves a content of which the source has a part, and gives its manifest, but no blocks: likewise.
func TestSubsetIsNotGiven(t *testing.T) {
	f, whole, _ := divisions(t)
	f.remove("fruit", "1", "part-r-00001")
	peer, c := f.giver(), newCluster()
	peer.gives("fruit", whole)
	peer.serve["fruit"] = whole.Content()
	c.addr = peer.addr
	c.holdsOther("1", whole.Content())
	r := f.run(in(c), func(o *Options) {
		o.FromPeers = true
		o.Server.Peers = func() []status.Peer { return nil }
	})
	r.serves("fruit", "1")
	if m := f.manifest("fruit", "1"); r.Set([]byte("fruit")).Current() == whole.Content() || len(m.Files) != 2 {
		t.Errorf("loaded from %d files", len(m.Files))
	}
}

// unlisted is a source whose directories cannot be listed; load processes have another one.
type unlisted struct{ source.Source }

func (unlisted) ReadDir(context.Context, string) (source.Entries, error) {
	return source.Entries{}, syscall.ECONNREFUSED
}

// That the source has a part of what other nodes serve is found by a load while the source cannot be listed: it has not been read by that.
func TestSubsetWhileSourceIsDown(t *testing.T) {
	f, whole, _ := divisions(t)
	f.remove("fruit", "1", "part-r-00001")
	other := *f
	other.store = filepath.Join(t.TempDir(), "other")
	a := other.run(in(newCluster()))
	a.serves("fruit", "1")
	serving, giving, c := f.giver(), f.giver(), newCluster()
	serving.serve["fruit"] = a.Set([]byte("fruit")).Current()
	a.stop()
	giving.gives("fruit", whole)
	giving.serve["fruit"] = whole.Content()
	c.addr = giving.addr
	c.holdsOther("1", whole.Content())
	r := f.run(in(c), func(o *Options) {
		o.FromPeers, o.Source = true, unlisted{o.Source}
		o.Server.Peers = func() []status.Peer { return []status.Peer{{Addr: serving.addr}} }
	})
	r.eventually("it is found", func() bool { return f.log.count("the source has a part of the files") > 0 })
	r.eventually("and shown", func() bool {
		return (*r.follower.catalog.Load())["fruit"].view.Load().facts.Taken == whole.Content().Input
	})
	if s := (*r.follower.catalog.Load())["fruit"].view.Load().facts.Source; s != version.Away {
		t.Errorf("the source is %d, and could not be listed", s)
	}
}

// While a node of upstream's kind is a member, a change of files is reported and not loaded.
func TestMixedClusterDoesNotReload(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.mixed = true
		n := f.follow(t, func(o *Options) { o.Cluster, o.RefreshPeriod = c, time.Minute })
		time.Sleep(time.Second)
		before := n.Set([]byte("fruit")).Current()
		f.putFile("fruit/1/part-r-00000", "other", fruit...)
		n.Refresh()
		time.Sleep(2 * time.Hour)
		problems := n.Status().Problems
		if n.Set([]byte("fruit")).Current() != before || f.log.count("load started") != 1 || len(problems) != 1 ||
			!strings.Contains(problems[0], "part-r-00000 was replaced") || !strings.Contains(problems[0], "original sequins are members") {
			t.Errorf("%d loads, problems %q", f.log.count("load started"), problems)
		}
		c.mu.Lock()
		c.mixed = false
		c.mu.Unlock()
		c.changed()
		n.Refresh()
		time.Sleep(10 * time.Minute)
		if problems := n.Status().Problems; n.Set([]byte("fruit")).Current() == before || len(problems) > 0 {
			t.Errorf("when that node has left: problems %q", problems)
		}
	})
}

// A node that was away returns while a newer version is in the source: it first takes what the others serve meanwhile, so that it serves that with them and
// can compare the newer one with it.
func TestTakesWhatOthersServe(t *testing.T) {
	t.Parallel()
	rules := ruled(gate.Rules{MaxShrink: 0.5})
	f := newFixture(t)
	f.put("fruit", "1", 2, numbered("k", 10)...)
	first := f.run(rules, in(newCluster()))
	first.serves("fruit", "1")
	first.stop()

	other := *f
	other.store, other.log = filepath.Join(t.TempDir(), "other"), &lines{}
	f.put("fruit", "2", 2, numbered("k", 100)...)
	a := other.run(rules, in(newCluster()))
	a.serves("fruit", "2")
	f.put("fruit", "3", 2, numbered("k", 20)...) // more than 1 has, and less than 2

	g, peer := a.beside()
	g.store = f.store
	b := g.run(rules, peer)
	b.serves("fruit", "2")
	b.held("3")
	b.update("fruit", "4", 2, numbered("k", 100)...)
	var order []string
	for _, line := range g.log.with("version active") {
		_, version, _ := strings.Cut(line, "version=")
		order = append(order, version[:1])
	}
	if got := strings.Join(order, " "); got != "1 2 4" {
		t.Errorf("became active: %s", got)
	}
}

// A node without rules reports the figures of its blocks as soon as it has them, advertised or not, and a node with rules judges by them.
func TestReportsWithoutRules(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	c := newCluster()
	a := f.run(func(o *Options) { o.Cluster, o.MinReplication = c, 2 })
	a.eventually("it reports", func() bool {
		r, err := report.Parse([]byte(c.report("1")))
		if err != nil || len(r.Blocks) != 3 {
			return false
		}
		records := int64(0)
		for _, b := range r.Blocks {
			records += b.Records
		}
		return r.Rules == "" && records == int64(len(fruit))
	})
	a.expectCurrent(t, "fruit", "")
	for least, want := range map[int64]bool{8: true, 9: false} {
		g, peer := a.beside()
		b := g.run(ruled(gate.Rules{MinRecords: least}), peer, func(o *Options) { o.Cluster.(*testCluster).own(0) })
		if want {
			b.serves("fruit", "1")
		} else {
			b.held("1")
		}
		b.stop()
	}
}

// The totals of what is served are not known, as a block of it is lost: the rules that compare with them are not applied after a while, and problems say so.
func TestTotalsUnknown(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, numbered("k", 100)...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	f.state("fruit", func(s *store.State) { s.Totals = nil })
	expect.NoError(t, os.Remove(filepath.Join(f.dir("fruit", "1"), "00001.block")))
	f.remove("fruit", "1")
	f.put("fruit", "2", 2, numbered("k", 10)...)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n := f.follow(t, func(o *Options) {
			o.Cluster, o.MinReplication = c, 2
			ruled(gate.Rules{MaxShrink: 0.5})(o)
		})
		time.Sleep(wholeTimeout + time.Second)
		n.expectCurrent(t, "fruit", "1")
		if v := n.onNode("fruit", "2"); !strings.Contains(v.Detail, "not judged yet: the totals of version 1, which is served, are not known") {
			t.Errorf("it waits: %+v", v)
		}
		time.Sleep(gate.MaxWait)
		problems := strings.Join(n.Status().Problems, "\n")
		if !strings.Contains(problems, "without some of its rules") || !strings.Contains(problems, "the totals of version 1") {
			t.Errorf("problems: %q", problems)
		}
		if n := f.log.count("rules of the gate cannot be applied"); n != 1 {
			t.Errorf("%d lines of the log say so", n)
		}
		c.hold("2", 0, 1)
		time.Sleep(time.Second)
		n.expectCurrent(t, "fruit", "2")
	})
}
