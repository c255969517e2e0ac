//go:build integration

package zk

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/harness"
)

const (
	participants = 4
	versions     = 3
	partitions   = 20
	faultyFor    = 10 * time.Second
)

// participant is one node of the cluster. Its processes come and go.
type participant struct {
	addr    string
	proxies []*gateway.Proxy // one per server
	isCut   bool
	s       *Session
	want    map[string]string // what it has published, by path
	views   []*view
}

// world is a cluster and its ensemble.
type world struct {
	t    *testing.T
	e    *ensemble
	rand *rand.Rand
	down []bool // by server
	all  []*participant
}

// testRandomFaults kills servers, processes and connections at random; afterwards, every view shows exactly what is
// published.
func testRandomFaults(t *testing.T, h *harness.Harness) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	w := &world{t: t, e: startEnsemble(t, h, "n=3"), rand: rand.New(rand.NewPCG(seed, 0)), down: make([]bool, 3)}
	for i := range participants {
		p := &participant{addr: fmt.Sprintf("host-%d:1", i)}
		w.start(p)
		w.all = append(w.all, p)
	}
	steps := time.NewTicker(20 * time.Millisecond)
	defer steps.Stop()
	for end := time.Now().Add(faultyFor); time.Now().Before(end); <-steps.C {
		w.step()
	}
	w.heal()
	w.verify()
}

// start begins a process of a participant that publishes nothing yet.
func (w *world) start(p *participant) {
	o := w.e.options(w.t)
	o.SessionTimeout = 2 * time.Second
	o.Servers, p.proxies, p.isCut = nil, nil, false
	for _, server := range w.e.servers {
		proxy := gateway.NewProxy(w.t, server)
		p.proxies = append(p.proxies, proxy)
		o.Servers = append(o.Servers, proxy.Addr)
	}
	p.s = session(w.t, o, func(s *Session) { s.audit = 5 * time.Second })
	p.want = map[string]string{}
	p.views = []*view{watch(p.s, NodesDir)}
	for v := range versions {
		p.views = append(p.views, watch(p.s, VersionDir("db", fmt.Sprint(v))))
	}
}

func (w *world) step() {
	p := w.all[w.rand.IntN(len(w.all))]
	switch n := w.rand.IntN(1000); {
	case n < 600:
		w.change(p)
	case n < 700:
		p.s.Prune(PartitionsDir + "/db")
	case n < 750:
		w.cutOrMend(p)
	case n < 760:
		w.killAndRestart(p)
	case n < 800:
		w.e.h.Try(fmt.Sprintf("zk expire session=%#x", sessionID(p.s))) // fails without a connection
	case n < 830:
		w.killOrRestartServer(w.rand.IntN(len(w.down)))
	}
}

func (w *world) change(p *participant) {
	path, data := NodePath("s", p.addr), fmt.Sprint(w.rand.Uint32())
	if w.rand.IntN(4) > 0 {
		path, data = PartitionPath("db", fmt.Sprint(w.rand.IntN(versions)), w.rand.IntN(partitions), p.addr), ""
	}
	if w.rand.IntN(3) == 0 {
		p.s.Unpublish(path)
		delete(p.want, path)
		return
	}
	p.s.Publish(path, []byte(data))
	p.want[path] = data
}

func (w *world) cutOrMend(p *participant) {
	for _, proxy := range p.proxies {
		if p.isCut {
			proxy.Mend(w.t)
		} else {
			proxy.Cut()
		}
	}
	p.isCut = !p.isCut
}

// killAndRestart replaces a process at once. The old one is cut off completely, including connections that were just
// being made, which Cut misses.
func (w *world) killAndRestart(p *participant) {
	for _, proxy := range p.proxies {
		proxy.Treat(w.t, `{"name":"up","type":"timeout","stream":"upstream","attributes":{"timeout":0}}`)
		proxy.Treat(w.t, `{"name":"down","type":"timeout","stream":"downstream","attributes":{"timeout":0}}`)
		proxy.Cut()
	}
	w.start(p)
}

func (w *world) killOrRestartServer(i int) {
	if w.down[i] {
		w.e.do(w.t, "restart", i)
	} else {
		w.e.do(w.t, "kill", i)
	}
	w.down[i] = !w.down[i]
}

func (w *world) heal() {
	for i, down := range w.down {
		if down {
			w.killOrRestartServer(i)
		}
	}
	for _, p := range w.all {
		if p.isCut {
			w.cutOrMend(p)
		}
	}
}

func (w *world) verify() {
	t := w.t
	want, owners := map[string]string{}, map[string]int64{}
	for _, p := range w.all {
		flush(t, p.s)
		for path, data := range p.want {
			want[path] = data
		}
	}
	o, sessions := observe(t, w.e.servers), 0
	expect.Eventually(t, "what is published is what is wanted", func() bool {
		if _, err := o.Sync("/sequins/v1"); err != nil {
			return false
		}
		got, by := o.tree(t, "/sequins/v1")
		owners = by
		return maps.Equal(trimRoot(got), want)
	})
	for _, p := range w.all {
		for path := range p.want {
			if owner := owners["/sequins/v1/"+path]; owner != sessionID(p.s) {
				t.Errorf("%s belongs to session %#x, not to %#x", path, owner, sessionID(p.s))
			}
		}
		for _, view := range p.views {
			expect.Eventually(t, p.addr+" sees all of "+view.dir, func() bool { return agrees(view, want) })
		}
		sessions += p.s.Status().Sessions
	}
	t.Logf("%d znodes, %d sessions of the %d that are left", len(want), sessions, participants)
}

func trimRoot(tree map[string]string) map[string]string {
	trimmed := map[string]string{}
	for path, data := range tree {
		trimmed[strings.TrimPrefix(path, "/sequins/v1/")] = data
	}
	return trimmed
}

// agrees reports whether a view shows exactly the wanted names of its directory.
func agrees(v *view, want map[string]string) bool {
	var entries []Entry
	for path, data := range want {
		if name, found := strings.CutPrefix("/sequins/v1/"+path, v.dir+"/"); found {
			entries = append(entries, Entry{Name: name, Data: []byte(data)})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return slices.EqualFunc(v.Entries(), entries, func(a, b Entry) bool {
		return a.Name == b.Name && bytes.Equal(a.Data, b.Data)
	})
}
