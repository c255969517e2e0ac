package node

import (
	"context"

	"sequins/fill"
	"sequins/transfer"
)

// taker returns what copies blocks from other nodes; nil if they are only loaded.
func (n *Node) taker() *transfer.Transfer {
	if n.o.Server.Peers == nil || !n.reloadable.Load().FromPeers {
		return nil
	}
	return n.transfer
}

// adopt takes over what other nodes serve of databases that this node has nothing of, and returns their names.
func (n *Node) adopt(ctx context.Context) []string {
	var addrs []string
	if n.taker() == nil {
		return nil
	}
	for _, p := range n.o.Server.Peers() {
		addrs = append(addrs, p.Addr)
	}
	known := *n.catalog.Load()
	return fill.Adopt(ctx, fill.Adoption{Transfer: n.transfer, Peers: addrs, Store: n.o.Store, Logger: n.log,
		Databases: n.o.Cluster.Databases(), Known: func(db string) bool { return known[db] != nil }})
}
