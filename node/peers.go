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
	if n.taker() == nil {
		return nil
	}
	known := *n.catalog.Load()
	return fill.Adopt(ctx, fill.Adoption{Transfer: n.transfer, Peers: n.peers(), Store: n.o.Store, Logger: n.log,
		Databases: n.o.Cluster.Databases(), Known: func(db string) bool { return known[db] != nil }})
}
