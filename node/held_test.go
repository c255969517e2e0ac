package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/blocks"
	"sequins/observe/status"
	"sequins/test/expect"
	"sequins/version/gate"
)

func ruled(r gate.Rules) func(*Options) {
	return func(o *Options) { o.each(func(d *DB) { d.Gate = r }) }
}

func keeping(n int) func(*Options) {
	return func(o *Options) { o.each(func(d *DB) { d.KeepVersions = n }) }
}

// numbered returns n keys.
func numbered(prefix string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("%s%05d", prefix, i))
	}
	return keys
}

// held waits until a version is held.
func (r *running) held(version string) {
	r.f.t.Helper()
	r.eventually(version+" is held", func() bool { return r.onNode("fruit", version).State == "HELD" })
}

// However many of the newest versions are held, a good one before them is found: by a new node, and after a rollback.
func TestGoodVersionBehindHeld(t *testing.T) {
	t.Parallel()
	for _, held := range []int{1, 5} {
		f := newFixture(t)
		f.put("fruit", "10", 2, numbered("k", 100)...)
		for i := range held {
			f.put("fruit", fmt.Sprint(11+i), 2, numbered("k", 10)...)
		}
		r := f.run(ruled(gate.Rules{MinRecords: 50}))
		r.serves("fruit", "10")
		r.stop()
	}
	for _, held := range []int{3, 5} {
		f := newFixture(t)
		f.put("fruit", "10", 2, numbered("k", 100)...)
		f.put("fruit", "11", 2, numbered("k", 100)...)
		r := f.run(ruled(gate.Rules{MinRecords: 50}))
		r.serves("fruit", "11")
		for i := range held {
			f.put("fruit", fmt.Sprint(12+i), 2, numbered("k", 10)...)
			r.Refresh()
			r.held(fmt.Sprint(12 + i))
		}
		f.pin("fruit", `exclude = ["11"]`)
		r.Refresh()
		r.serves("fruit", "10")
		r.stop()
	}
}

// A database whose only version is held does not make a node unready, also not after a restart.
func TestReadyBesideHeld(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 2, numbered("k", 10)...)
	for range 2 {
		r := f.run(ruled(gate.Rules{MinRecords: 50}))
		r.held("1")
		r.eventually("it is ready", func() bool { ok, _ := r.Ready(""); return ok })
		r.stop()
	}
}

// The blocks of the version that was served are lost while the node is down: a newer one is not judged by what is not there.
func TestJudgedAfterLoss(t *testing.T) {
	t.Parallel()
	for _, rules := range []gate.Rules{{}, {MinRecords: 1}} {
		f := newFixture(t)
		f.put("fruit", "1", 2, fruit...)
		r := f.run(ruled(rules))
		r.serves("fruit", "1")
		r.stop()
		expect.NoError(t, os.RemoveAll(f.dir("fruit", "1")))
		f.put("fruit", "2", 2, fruit...)
		r = f.run(ruled(rules))
		r.serves("fruit", "2")
		r.stop()
	}
}

// What could not be read of a version is not judged; it is read again when the block is mended.
func TestDamageIsNotJudged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run(ruled(gate.Rules{MinRecords: 100_000}))
	r.held("1")
	r.stop()
	f.flip("fruit", "1", "00000.block")
	r = f.run(ruled(gate.Rules{Required: []gate.Required{{Key: "fig"}}}))
	r.serves("fruit", "1")
}

// Figures of other rules are not used while a block is loaded again.
func TestRulesChangeDuringLoad(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	r := f.run(ruled(gate.Rules{MinRecords: 100_000}))
	r.held("1")
	f.flip("fruit", "1", "00000.block")
	g, open := f.source.shut()
	h := r.Set([]byte("fruit")).AcquireVersion("1", "")
	_, _, err := h.Get(0, []byte("fig"), new(blocks.Scratch))
	h.Release()
	if !errors.Is(err, blocks.ErrCorrupt) {
		t.Fatal(err)
	}
	<-g.waiting
	now := *r.reloadable.Load()
	now.each(func(d *DB) { d.Gate = gate.Rules{Required: []gate.Required{{Key: "not there"}}} })
	r.Apply(now)
	r.eventually("not judged", func() bool { return r.onNode("fruit", "1").State != "HELD" })
	open()
	r.eventually("held by the new rules", func() bool { return strings.Contains(r.onNode("fruit", "1").Detail, "not there") })
	r.expectCurrent(t, "fruit", "")
}

// goodAndBad returns a source with a good version that is served, and a bad one that is held.
func goodAndBad(t *testing.T, options ...func(*Options)) (*fixture, *running) {
	t.Helper()
	f := newFixture(t)
	f.put("fruit", "1", 2, numbered("k", 100)...)
	r := f.run(options...)
	r.serves("fruit", "1")
	f.put("fruit", "2", 2, numbered("k", 10)...)
	r.Refresh()
	r.held("2")
	return f, r
}

// A rollback from a later version does not lead to one that was held, whether it is still on the disk or not.
func TestRollbackPassesHeld(t *testing.T) {
	t.Parallel()
	for keep := 1; keep <= 2; keep++ {
		f, r := goodAndBad(t, ruled(gate.Rules{MaxShrink: 0.5}), keeping(keep))
		r.update("fruit", "3", 2, numbered("k", 100)...)
		r.eventually("2 is removed", func() bool { return r.onNode("fruit", "2").State == "" })
		f.pin("fruit", `exclude = ["3"]`)
		r.Refresh()
		r.serves("fruit", "1")
		if f.log.count("rolled back", "version=2") > 0 {
			t.Error("2 was served")
		}
		r.stop()
	}
}

// The same with a node that was killed before it could delete the held version.
func TestHeldIsNotKept(t *testing.T) {
	o := []func(*Options){ruled(gate.Rules{MaxShrink: 0.5, MaxGrowth: 5}), keeping(2)}
	f, r := goodAndBad(t, o...)
	r.stop()
	on, saved := f.dir("fruit", "2"), filepath.Join(t.TempDir(), "2")
	expect.NoError(t, os.CopyFS(saved, os.DirFS(on)))
	r = f.run(o...)
	r.held("2")
	r.update("fruit", "3", 2, numbered("k", 100)...)
	r.eventually("2 is removed", func() bool { return r.onNode("fruit", "2").State == "" })
	r.stop()
	expect.NoError(t, os.CopyFS(on, os.DirFS(saved)))
	r = f.run(o...)
	r.serves("fruit", "3")
	f.pin("fruit", `exclude = ["3"]`)
	r.Refresh()
	r.serves("fruit", "1")
}

// A held version is not taken for the one that was served when the state cannot be read, if its own figures break a rule.
func TestHeldWasNotServed(t *testing.T) {
	f, r := goodAndBad(t, ruled(gate.Rules{MinRecords: 50}))
	r.stop()
	expect.NoError(t, os.WriteFile(f.statePath("fruit"), nil, 0o644))
	r = f.run(ruled(gate.Rules{MinRecords: 50}))
	r.serves("fruit", "1")
	r.held("2")
}

// in makes a node a member of a cluster.
func in(c *testCluster) func(*Options) { return func(o *Options) { o.Cluster = c } }

// beside returns a fixture with the same source and an empty store, and the option of a node that has r as its peer.
func (r *running) beside() (*fixture, func(*Options)) {
	g := *r.f
	g.store, g.log = filepath.Join(r.f.t.TempDir(), "store"), &lines{}
	g.t.Cleanup(func() {
		if g.t.Failed() {
			g.t.Log(g.log.String())
		}
	})
	return &g, func(o *Options) {
		c, other := newCluster(), r.o.Cluster.(*testCluster)
		c.peer, c.addr = other, strings.TrimPrefix(r.url, "http://")
		other.mu.Lock()
		other.watchers = append(other.watchers, c)
		other.mu.Unlock()
		o.Cluster = c
		o.Server.Peers = func() []status.Peer { return []status.Peer{{Addr: strings.TrimPrefix(r.url, "http://")}} }
	}
}

// Two nodes have held all versions but the oldest one, and have nothing of the older ones of those any more. A node that has lost its disk, and cannot
// judge the older ones without them, does not load these, and finds the good one.
func TestRejectedByAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("fruit", "1", 2, numbered("k", 100)...)
	for _, version := range []string{"2", "3", "4"} {
		f.put("fruit", version, 2, numbered("k", 10)...)
	}
	rules := ruled(gate.Rules{MinRecords: 50})
	a := f.run(rules, in(newCluster()))
	a.serves("fruit", "1")
	g, peer := a.beside()
	b := g.run(rules, peer, func(o *Options) {
		o.Cluster.(*testCluster).own(0)
		o.Server.Peers = func() []status.Peer { return nil } // it does not learn what is served
	})
	b.serves("fruit", "1")
	b.held("4")
	if n := g.log.count("load started", "version=2") + g.log.count("load started", "version=3"); n > 0 {
		t.Errorf("%d loads of versions that were held", n)
	}
}

// A node with an empty disk takes what the other one serves, and does not serve what that one holds: neither the newest
// version nor those before it, which the other one has removed.
func TestEmptyNodeTakesWhatOthersServe(t *testing.T) {
	t.Parallel()
	for _, held := range []int{1, 5} {
		f, a := goodAndBad(t, ruled(gate.Rules{MaxShrink: 0.5}), in(newCluster()))
		for i := range held - 1 {
			f.put("fruit", fmt.Sprint(3+i), 2, numbered("k", 10)...)
			a.Refresh()
			a.held(fmt.Sprint(3 + i))
		}
		g, peer := a.beside()
		b := g.run(ruled(gate.Rules{MaxShrink: 0.5}), peer)
		b.serves("fruit", "1")
		b.held(fmt.Sprint(1 + held))
		if active := g.log.with("version active"); len(active) != 1 {
			t.Errorf("%d held, became active: %q", held, active)
		}
		b.stop()
		a.stop()
	}
}

// Without a node that answers, an empty one decides alone.
func TestEmptyNodeAlone(t *testing.T) {
	_, a := goodAndBad(t, ruled(gate.Rules{MaxShrink: 0.5}), in(newCluster()))
	g, peer := a.beside()
	a.stop()
	b := g.run(ruled(gate.Rules{MaxShrink: 0.5}), peer)
	b.serves("fruit", "2")
}

// A rollback passes over a version that the other node holds, whichever of them reads the pin first.
func TestRollbackPassesHeldOfOthers(t *testing.T) {
	for name, first := range map[string]bool{"read first": true, "read later": false} {
		t.Run(name, func(t *testing.T) { rollBackBeside(t, first) })
	}
}

func rollBackBeside(t *testing.T, first bool) {
	f, a := goodAndBad(t, ruled(gate.Rules{MaxShrink: 0.5}), in(newCluster()))
	defer a.stop()
	a.update("fruit", "3", 2, numbered("k", 100)...)
	g, peer := a.beside()
	b := g.run(ruled(gate.Rules{MaxShrink: 0.5}), peer)
	b.serves("fruit", "3")
	f.pin("fruit", `exclude = ["3"]`)
	if first {
		b.Refresh()
		b.eventually("it has read the pin", func() bool { return g.log.count("pinned") > 0 || g.log.count("excluded") > 0 })
	}
	a.Refresh()
	a.serves("fruit", "1")
	a.held("2")
	b.Refresh()
	b.serves("fruit", "1")
	for _, log := range []*lines{f.log, g.log} {
		if log.count("rolled back", "version=2") > 0 {
			t.Error("2 was served")
		}
	}
}

// TestMaxMissingAfterLoss: where the blocks of what was served are lost, no key of them can be looked up in another version, which waits
// for a while and then passes without that rule.
func TestMaxMissingAfterLoss(t *testing.T) {
	f := newFixture(t)
	rules := gate.Rules{MaxMissing: 0.5}
	f.put("fruit", "1", 2, fruit...)
	r := f.run(ruled(rules))
	r.serves("fruit", "1")
	r.stop()
	expect.NoError(t, os.RemoveAll(f.dir("fruit", "1")))
	f.remove("fruit", "1")
	f.put("fruit", "2", 2, fruit...)
	r = f.run(ruled(rules))
	r.eventually("2 waits for keys of 1", func() bool {
		return strings.Contains(r.onNode("fruit", "2").Detail, "no node has keys of version 1, which was served, to look up")
	})
}
