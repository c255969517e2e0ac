package node

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/content"
	"sequins/store"
	"sequins/test/expect"
	"sequins/version"
)

// A giver is another node that gives manifests, and no blocks.
type giver struct {
	t     *testing.T
	addr  string
	store *store.Store
	serve map[string]content.Content
}

// giver starts another node.
func (f *fixture) giver() *giver {
	f.t.Helper()
	local, err := store.Open(filepath.Join(f.t.TempDir(), "giver"))
	expect.NoError(f.t, err)
	g := &giver{t: f.t, store: local, serve: map[string]content.Content{}}
	t := transfer.New(transfer.Options{Set: func([]byte) *version.Set { return nil }, Store: local,
		Serving: func() map[string]content.Content { return g.serve }})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("proxy") == "serving" {
			t.AnswerServing(w)
			return
		}
		if code, text := t.Serve(w, req, strings.TrimPrefix(req.URL.Path, "/"), req.URL.RawQuery); code != http.StatusOK {
			http.Error(w, text, code)
		}
	}))
	g.addr = strings.TrimPrefix(server.URL, "http://")
	f.t.Cleanup(func() {
		server.Close()
		t.Close()
		expect.NoError(f.t, local.Close())
	})
	return g
}

// gives makes the giver hold a content.
func (g *giver) gives(db string, m store.Manifest) {
	g.t.Helper()
	_, err := g.store.Create(db, m)
	expect.NoError(g.t, err)
}

// divisions returns two manifests of version 1 of fruit, of which the second has the later division, and a fixture with the same source in whose store
// nothing is.
func divisions(t *testing.T) (g *fixture, first, later store.Manifest) {
	t.Helper()
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	r := f.run()
	r.serves("fruit", "1")
	r.stop()
	first = f.manifest("fruit", "1")
	if !first.Aligned {
		t.Fatalf("the files are those of partitions, and the plan is %+v", first)
	}
	later = first
	later.Aligned = false
	g = &fixture{t: t, root: f.root, store: filepath.Join(t.TempDir(), "store"), source: f.source, log: &lines{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(g.log.String())
		}
	})
	return g, first, later
}

// readsAll checks that every key is there.
func (r *running) readsAll() {
	r.f.t.Helper()
	for _, key := range fruit {
		if got := r.get("/fruit/" + key); got.body != key+" of 1" {
			r.f.t.Errorf("%s: %+v", key, got)
		}
	}
}

// What another node has planned is loaded by its division, and not planned again.
func TestDivisionOfAnotherNode(t *testing.T) {
	f, _, later := divisions(t)
	peer, c := f.giver(), newCluster()
	peer.gives("fruit", later)
	c.addr = peer.addr
	c.holdsOther("1", later.Content())
	r := f.run(func(o *Options) { o.Cluster = c })
	r.serves("fruit", "1")
	if m := f.manifest("fruit", "1"); m.Content() != later.Content() {
		t.Errorf("loaded by %+v", m)
	}
	if n := f.log.count("load started"); n != 1 {
		t.Errorf("%d loads", n)
	}
	r.readsAll()
}

// Another node refutes the partitioner while this one loads, or has loaded and not switched yet: it loads anew by the later division. An earlier division
// changes nothing.
func TestRefutedElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		loaded  bool // before the other node tells
		earlier bool
	}{"while it loads": {}, "before the switch": {loaded: true}, "earlier": {loaded: true, earlier: true}} {
		t.Run(name, func(t *testing.T) {
			f, first, later := divisions(t)
			peer, c := f.giver(), newCluster()
			c.addr = peer.addr
			own, others := first, later
			if test.earlier {
				own, others = later, first
				peer.gives("fruit", own) // from which it takes the later one
				c.holdsOther("1", own.Content())
			}
			r := f.run(func(o *Options) {
				o.Cluster, o.MinReplication = c, 2
				if !test.loaded {
					slow(o)
				}
			})
			if test.loaded {
				r.eventually("it is loaded", func() bool { return len(r.onNode("fruit", "1").Partitions) == 3 })
			} else {
				r.eventually("it loads", func() bool { return filepath.Base(f.dir("fruit", "1")) != "none" })
				r.Apply(Reloadable{}) // the next load is fast
			}
			if m := f.manifest("fruit", "1"); m.Content() != own.Content() {
				t.Fatalf("loaded by %+v", m)
			}
			if test.earlier {
				expect.NoError(t, peer.store.Remove("fruit", own.Content().Input))
			}
			peer.gives("fruit", others)
			c.holdsOther("1", others.Content())
			r.eventually("it is loaded by the later division", func() bool {
				return c.division("1") == later.Content().Division && len(c.has("1")) == 3 && f.manifest("fruit", "1").Content() == later.Content()
			})
			c.hold("1", 0, 1, 2)
			r.serves("fruit", "1")
			r.readsAll()
			if n := f.log.count("load started"); test.earlier && n != 1 {
				t.Errorf("%d loads", n)
			}
		})
	}
}

// A load by a division that another node has refuted is cancelled at each stage, and the one by the later division is not.
func TestRefutedWhilePlanning(t *testing.T) {
	f, first, later := divisions(t)
	d, in := f.db("fruit", Reloadable{}), first.Content().Input
	defer d.bg.stop()
	d.facts.Add(in)
	d.note()
	l, err := newLive("fruit", first, version.Solo{})
	expect.NoError(t, err)
	d.keeper.insert(l)
	cancelled := 0
	running := &loading{cancel: func() { cancelled++ }}
	running.stage.Store(planning)
	d.loads.running[in] = running
	for range 2 {
		d.loads.takeDivision(in, nil, &later)
	}
	if m := d.loads.knownManifest(in); cancelled != 1 || !running.refuted || m.Content() != later.Content() {
		t.Errorf("cancelled %d times, and the next load is by %+v", cancelled, m)
	}
}

// What is served stays what it is, whatever other nodes find, also after a restart.
func TestServedIsNotRefuted(t *testing.T) {
	f, _, later := divisions(t)
	peer, c := f.giver(), newCluster()
	c.addr = peer.addr
	run := func() *running {
		r := f.run(func(o *Options) { o.Cluster = c })
		r.serves("fruit", "1")
		return r
	}
	r := run()
	peer.gives("fruit", later)
	c.holdsOther("1", later.Content())
	f.put("fruit", "2", 1, fruit...)
	r.Refresh()
	r.serves("fruit", "2") // so it has heard of the other division
	f.remove("fruit", "2")
	r.stop()
	if n := f.log.count("load started", "version=1 "); n != 1 {
		t.Errorf("%d loads", n)
	}

	var first store.Manifest
	f, first, later = divisions(t)
	c = newCluster()
	r = run()
	c.holdsOther("1", later.Content())
	r.stop()
	f.source.down.Store(true)
	r = run()
	r.readsAll()
	if m := f.manifest("fruit", "1"); m.Content() != first.Content() {
		t.Errorf("it is %+v", m)
	}
}

// A load waits for its turn, and another node that holds the version does not give the manifest at first: it is asked again after a pause, whatever
// happens in the cluster.
func TestManifestOfWaiting(t *testing.T) {
	t.Parallel()
	other := newFixture(t)
	other.put("fruit", "1", 2, fruit...)
	other.put("fruit", "2", 2, fruit...)
	has := other.run()
	has.serves("fruit", "2")
	has.stop()
	m := other.manifest("fruit", "2")

	f := &fixture{t: t, root: other.root, store: filepath.Join(t.TempDir(), "store"), source: other.source, log: &lines{}}
	f.remove("fruit", "2")
	peer, c := f.giver(), newCluster()
	c.addr = peer.addr
	c.hold("1", 0, 1)
	r := f.run(f.verbose, func(o *Options) { o.Cluster, o.MaxParallelLoads, o.MinReplication = c, 1, 1 })
	r.serves("fruit", "1")
	slow, open := f.source.shut()
	defer open()
	f.put("slow", "1", 1, fruit...)
	r.Refresh()
	<-slow.waiting
	f.put("fruit", "2", 2, fruit...)
	r.Refresh()
	r.eventually("it waits", func() bool { return strings.Contains(r.onNode("fruit", "2").Detail, "waiting for other databases") })
	asked := func() int { return f.log.count("does not give the manifest") }
	before, began := asked(), time.Now()
	c.hold("2", 0, 1)
	c.holdsOther("2", m.Content())
	r.eventually("the manifest is asked for", func() bool { return asked() > before })
	for range 100 {
		c.changed()
	}
	peer.gives("fruit", m)
	r.serves("fruit", "2")
	// Of each of the two contents once, and again after each pause: all but the last time in vain.
	if n, pauses := asked()-before, int(time.Since(began)/askPause); n >= 2*(1+pauses) {
		t.Errorf("it was asked for %d times in vain, in %d pauses", n, pauses)
	}
}
