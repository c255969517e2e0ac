package node

import (
	"context"
	"maps"
	"slices"

	"sequins/internal/names"
	"sequins/transfer"
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
