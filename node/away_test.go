package node

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"sequins/observe/status"
	"sequins/version"
)

// away is a cluster that cannot be joined until it is let.
type away struct {
	*testCluster
	remembered []string
	let        chan struct{}
}

func (a away) Join(ctx context.Context, start func([]string)) error {
	start(a.remembered)
	select {
	case <-a.let:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var _ version.Cluster = away{}

// A node that cannot join its cluster serves what it served, is ready, and changes nothing: neither versions nor databases that the source has by now are
// loaded, nor is what is not in it any more removed. When it has joined, it goes on.
func TestAway(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run(in(newCluster()))
	r.serves("fruit", "1")
	r.stop()
	f.remove("fruit", "1")
	f.put("fruit", "2", 2, fruit...)
	f.put("trees", "1", 2, fruit...)

	c := away{testCluster: newCluster(), let: make(chan struct{})}
	joins := status.Wait{For: status.WaitForZooKeeper, What: "ZooKeeper"}
	r = f.run(func(o *Options) { o.Cluster, o.Joining = c, func() *status.Wait { return &joins } })
	defer r.stop()
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
	if n := f.log.count("load started"); n != 1 || f.onDisk("trees") != "" || len(c.advertised) > 0 {
		t.Errorf("it has changed something: %d loads, advertised %v", n, c.advertised)
	}
	close(c.let)
	r.serves("fruit", "2")
	r.serves("trees", "1")
}

// A node that is away serves nothing of a database of which a node that it remembers serves a newer version, and is not ready.
func TestAwayAndBehind(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	a := f.run(in(newCluster()))
	defer a.stop()
	a.serves("fruit", "1")
	g, peer := a.beside()
	b := g.run(peer)
	b.serves("fruit", "1")
	b.stop()
	f.put("fruit", "2", 2, fruit...)
	a.Refresh()
	a.serves("fruit", "2")

	let := make(chan struct{})
	b = g.run(peer, func(o *Options) {
		o.Cluster = away{testCluster: o.Cluster.(*testCluster), remembered: []string{strings.TrimPrefix(a.url, "http://")}, let: let}
	})
	defer b.stop()
	b.eventually("it has asked", func() bool { return g.log.count("another node serves a newer version") == 1 })
	b.eventually("it answers others", func() bool { return b.get("/readyz").status == http.StatusServiceUnavailable })
	if got := b.get("/fruit/fig"); got.status != http.StatusServiceUnavailable {
		t.Errorf("it answers %+v", got)
	}
	close(let)
	b.serves("fruit", "2")
}
