package node

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/observe/peerstatus"
	"sequins/observe/status"
)

// taker returns what copies blocks from other nodes; nil if they are only loaded.
func (n *Node) taker() *transfer.Transfer {
	if n.o.Server.Peers == nil || !n.reloadable.Load().FromPeers {
		return nil
	}
	return n.transfer
}

// servingTimeout limits how long other nodes are asked what they serve.
const servingTimeout = 3 * time.Second

// askServing asks the other nodes what they serve, by their addresses and the names of databases.
func (n *Node) askServing(ctx context.Context) map[string]map[string]content.Content {
	var addrs []string
	if n.o.Server.Peers != nil {
		for _, p := range n.o.Server.Peers() {
			addrs = append(addrs, p.Addr)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, servingTimeout)
	defer cancel()
	return n.transfer.Serving(ctx, addrs)
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
			d.bg.send(func() {
				if d.facts.Current.Name == "" {
					d.take(serving)
					d.decide()
				}
			})
		}
	}
}

const (
	// settingsPeriod is the interval at which the settings of the nodes are compared.
	settingsPeriod = 30 * time.Second
	// firstSettings is the time of the first comparison after the start: nodes that start together are there by then.
	firstSettings = 5 * time.Second
)

// compareSettings compares the settings of this node with those of the others until ctx ends, and after each reload.
func (n *Node) compareSettings(ctx context.Context) {
	if n.o.Server.Peers == nil || n.o.Server.Settings == nil {
		return
	}
	peers := peerstatus.New(n.o.Server.Peers, n.o.Server.Nodes)
	for wait := firstSettings; ; wait = settingsPeriod {
		select {
		case <-time.After(wait):
		case <-n.resettled:
		case <-ctx.Done():
			return
		}
		all := peers.Settings(ctx) // of nodes that do not answer, they are unknown, and no difference
		if ctx.Err() != nil {
			return
		}
		own := maps.Clone(n.o.Server.Settings())
		own[status.SettingBuild] = n.o.Build
		all[n.o.Name] = own
		now := status.Compare(all)
		n.logDifferences(n.differences.Swap(&now), now)
	}
}

// logDifferences logs each difference once, again when it changes, and when it is resolved.
func (n *Node) logDifferences(before *[]status.Difference, now []status.Difference) {
	old := make(map[string]string)
	if before != nil {
		for _, d := range *before {
			old[d.Setting] = d.String()
		}
	}
	for _, d := range now {
		level := slog.LevelWarn
		if len(status.Faults([]status.Difference{d})) == 0 {
			level = slog.LevelInfo
		}
		if old[d.Setting] != d.String() {
			n.log.Log(context.Background(), level, "the nodes of the cluster are configured differently", "setting", d.Setting, "values", d.String())
		}
		delete(old, d.Setting)
	}
	for setting := range old {
		n.log.Info("the nodes of the cluster are configured alike again", "setting", setting)
	}
}
