package node

import (
	"context"
	"maps"
	"slices"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/content"
	"sequins/internal/names"
	"sequins/internal/sleep"
)

// taker returns what copies blocks from other nodes; nil if they are only loaded.
func (n *Node) taker() *transfer.Transfer {
	if n.o.Server.Peers == nil || !n.reloadable.Load().FromPeers {
		return nil
	}
	return n.transfer
}

// peers returns the addresses of the other nodes.
func (n *Node) peers() (addrs []string) {
	if n.o.Server.Peers == nil {
		return nil
	}
	for _, p := range n.o.Server.Peers() {
		addrs = append(addrs, p.Addr)
	}
	return addrs
}

// The pauses between questions what other nodes serve of a database of which this node serves nothing.
const (
	minAskPause = 5 * time.Second
	maxAskPause = time.Minute
)

// followServing asks what other nodes serve until ctx ends, while this node serves nothing of some database: they may serve by now
// what this node waits for in vain.
func (n *Node) followServing(ctx context.Context) {
	for asked := 1; ; asked++ {
		if sleep.For(ctx, sleep.Backoff(asked, minAskPause, maxAskPause)) != nil {
			return
		}
		var idle []*db
		for _, d := range *n.catalog.Load() {
			if d.view.Load().facts.Current.Name == "" {
				idle = append(idle, d)
			}
		}
		if len(idle) == 0 {
			asked = 0
			continue
		}
		serving := n.askServing(ctx)
		for _, d := range idle {
			latest, _ := transfer.Latest(serving, d.name)
			d.bg.send(func() { d.takeLatest(latest) })
		}
	}
}

// takeLatest takes what most other nodes serve, if nothing is served here.
func (d *db) takeLatest(c content.Content) {
	if d.facts.Current.Name == "" {
		d.take(c)
		d.decide()
	}
}

// adopt returns the databases that only other nodes serve, which this node then takes from them (see begin).
func (n *Node) adopt(ctx context.Context) []string {
	if n.taker() == nil {
		return nil
	}
	elsewhere, known, adopted := n.askServing(ctx), *n.catalog.Load(), make(map[string]bool)
	n.elsewhere.Store(&elsewhere)
	for _, serves := range elsewhere {
		for db := range serves {
			if known[db] == nil && names.Valid(db) {
				adopted[db] = true
			}
		}
	}
	return slices.Collect(maps.Keys(adopted))
}
