package node

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"sequins/observe/status"
	"sequins/test/expect"
	"sequins/version"
)

// away is a cluster that cannot be joined until it is let.
type away struct {
	*testCluster
	remembered []string
	let        chan struct{}
}

func (a away) Join(ctx context.Context, start func([]string) error) error {
	if err := start(a.remembered); err != nil {
		return err
	}
	select {
	case <-a.let:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var _ version.Cluster = away{}

// servedFruit returns a fixture whose node has served version 1 of fruit in a cluster, and has stopped.
func servedFruit(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run(in(newCluster()))
	r.serves("fruit", "1")
	r.stop()
	return f
}

// A node that cannot join its cluster serves what it served, is ready, and changes nothing: neither versions nor databases that the source has by now are
// loaded, nor is what is not in it any more removed. When it has joined, it goes on.
func TestAway(t *testing.T) {
	f := servedFruit(t)
	f.remove("fruit", "1")
	f.put("fruit", "2", 2, fruit...)
	f.put("trees", "1", 2, fruit...)

	c := away{testCluster: newCluster(), let: make(chan struct{})}
	joins := status.Wait{For: status.WaitForZooKeeper, What: "ZooKeeper"}
	r := f.run(func(o *Options) { o.Cluster, o.Joining = c, func() *status.Wait { return &joins } })
	r.eventually("it serves", func() bool { return r.get("/fruit/fig").body == "fig of 1" })
	for path, want := range map[string]int{"/readyz": 200, "/fruit/none": 404, "/trees/fig": 503} {
		if got := r.get(path); got.status != want {
			t.Errorf("%s: %d, want %d", path, got.status, want)
		}
	}
	waits := r.Status().Waiting
	if len(waits) != 1 || waits[0].For != status.WaitForZooKeeper || waits[0].Blocks {
		t.Errorf("it waits for %v", waits)
	}
	if n := f.log.count("load started"); n != 1 || f.onDisk("trees") != "" || len(c.advertised)+len(c.reports) > 0 {
		t.Errorf("it has changed something: %d loads, advertised %v, reports %v", n, c.advertised, c.reports)
	}
	g, open := f.source.shut()
	defer open()
	close(c.let)
	<-g.waiting // while it loads
	if got := r.get("/readyz"); got.status != 200 {
		t.Errorf("it was ready, and is not when it has joined: %s", got.body)
	}
	open()
	r.serves("fruit", "2")
	r.serves("trees", "1")
}

// A node that is away serves for the delay of the shutdown, as any that is ready.
func TestShutdownDelayAway(t *testing.T) {
	f := servedFruit(t)
	const delay = time.Second / 2
	r := f.run(func(o *Options) { o.Cluster, o.ShutdownDelay = away{testCluster: newCluster()}, delay })
	r.eventually("it is ready", func() bool { return r.get("/readyz").status == 200 })
	began := time.Now()
	r.cancel()
	var err error
	for err == nil {
		_, err = r.try("/fruit/fig")
	}
	if d := time.Since(began); d < delay {
		t.Errorf("it refuses connections after %v: %v", d, err)
	}
}

// Without its state, a node that is away does not know what it served, and serves nothing.
func TestAwayWithoutState(t *testing.T) {
	f := servedFruit(t)
	expect.NoError(t, os.WriteFile(f.statePath("fruit"), []byte("damaged"), 0o600))
	c := away{testCluster: newCluster(), let: make(chan struct{})}
	r := f.run(func(o *Options) { o.Cluster = c })
	r.eventually("it answers", func() bool { return strings.Contains(r.get("/fruit/fig").body, "no version") })
	close(c.let)
	r.serves("fruit", "1")
}

// A node that is away serves nothing of a database of which a node that it remembers serves a newer version, and is not ready.
func TestAwayAndBehind(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	a := f.run(in(newCluster()))
	a.serves("fruit", "1")
	g, peer := a.beside()
	b := g.run(peer)
	b.serves("fruit", "1")
	b.stop()
	a.update("fruit", "2", 2, fruit...)

	active := g.log.count("version active")
	let := make(chan struct{})
	start := func() {
		asked := g.log.count("another node serves a newer version")
		b = g.run(peer, func(o *Options) {
			o.Cluster = away{testCluster: o.Cluster.(*testCluster), remembered: []string{strings.TrimPrefix(a.url, "http://")}, let: let}
		})
		b.eventually("it has asked", func() bool { return g.log.count("another node serves a newer version") > asked })
		b.eventually("it answers others", func() bool { return b.get("/readyz").status == http.StatusServiceUnavailable })
	}
	for range 5 { // a shutdown is no reason to serve it
		start()
		b.stop()
	}
	start()
	if got := b.get("/fruit/fig"); got.status != http.StatusServiceUnavailable || g.log.count("version active") > active {
		t.Errorf("it answers %+v", got)
	}
	close(let)
	b.serves("fruit", "2")
}

// A node tells others what it served from its first moment: they may start at the same time.
func TestTellsWhatItServed(t *testing.T) {
	f := servedFruit(t)
	r := f.run(func(o *Options) {
		o.Cluster = joining{testCluster: newCluster(), ask: func() {}, let: make(chan struct{})}
	})
	r.eventually("it tells", func() bool { return strings.Contains(r.get("/?proxy=serving").body, `"name":"1"`) })
}
