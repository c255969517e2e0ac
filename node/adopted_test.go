package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/status"
	"sequins/version"
)

// adopting is the cluster of a node whose one peer holds all partitions.
type adopting struct {
	*testCluster
	addr string
}

func (a adopting) Databases() []string { return []string{"fruit"} }

func (a adopting) Follow(ctx context.Context, db, v string) version.Following {
	return adoptingFollowing{a.testCluster.Follow(ctx, db, v).(testFollowing), a.addr}
}

type adoptingFollowing struct {
	testFollowing
	addr string
}

func (f adoptingFollowing) Peers(int) []string { return []string{f.addr} }
func (f adoptingFollowing) Replicas(int) int   { return 1 }

// A new node of another source, which is away at first, fills itself from a node that still has the former source.
func TestAdoptedFromFormerSource(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, "fig")
	a := f.run()
	a.serves("fruit", "1")
	g := newFixture(t)
	g.put("fruit", "1", 2, "plum")
	g.source.down.Store(true)
	addr := strings.TrimPrefix(a.url, "http://")
	b := g.run(func(o *Options) {
		o.Cluster, o.FromPeers = adopting{newCluster(), addr}, true
		o.Server.Peers = func() []status.Peer { return []status.Peer{{Addr: addr}} }
	})
	b.serves("fruit", "1")
	b.eventually("it has the blocks", func() bool {
		_, err := os.Stat(filepath.Join(g.store, "data", "fruit", "1", "00001.block"))
		return err == nil && b.get("/fruit/fig").status == 200
	})
	a.stop()
	g.source.down.Store(false)
	b.Refresh()
	b.eventually("it says where it is from, until it has looked", func() bool {
		return strings.Contains(b.node("fruit", "1").Error, "was loaded from another node") || b.get("/fruit/plum").status == 200
	})
	b.eventually("this source is served", func() bool { return b.get("/fruit/plum").status == 200 && b.get("/fruit/fig").status == 404 })
	b.stop()
}
