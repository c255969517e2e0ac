package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/observe/status"
)

// A new node of another source, which is away at first, fills itself from a node that still has the former source.
func TestAdoptedFromFormerSource(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, "fig")
	first, second := newCluster(), newCluster()
	a := f.run(func(o *Options) { o.Cluster = first })
	a.serves("fruit", "1")
	g := newFixture(t)
	g.put("fruit", "1", 2, "plum")
	g.source.down.Store(true)
	addr := strings.TrimPrefix(a.url, "http://")
	second.peer, second.addr = first, addr
	b := g.run(func(o *Options) {
		o.Cluster, o.FromPeers = second, true
		o.Server.Peers = func() []status.Peer { return []status.Peer{{Addr: addr}} }
	})
	b.serves("fruit", "1")
	b.eventually("it has the blocks", func() bool {
		_, err := os.Stat(filepath.Join(g.dir("fruit", "1"), "00001.block"))
		return err == nil && b.get("/fruit/fig").status == 200
	})
	a.stop()
	g.source.down.Store(false)
	b.Refresh()
	b.eventually("this source is served", func() bool { return b.get("/fruit/plum").status == 200 && b.get("/fruit/fig").status == 404 })
	b.stop()
}
