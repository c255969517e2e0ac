package node

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"sequins/observe/peerstatus"
	"sequins/observe/status"
)

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
	peers := peerstatus.New(n.o.Server.Peers, n.o.Server.PeerTLS, n.o.Server.PeerSecret)
	defer peers.Close()
	for wait := firstSettings; ; wait = settingsPeriod {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-n.resettled:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
		n.compareOnce(ctx, peers)
	}
}

// compareOnce compares the settings with those of the nodes that answer. Those of a node that does not are unknown, and no difference.
func (n *Node) compareOnce(ctx context.Context, peers *peerstatus.Client) {
	all := peers.Settings(ctx)
	if ctx.Err() != nil {
		return
	}
	own := maps.Clone(n.o.Server.Settings())
	own[status.SettingBuild] = n.o.Build
	all[n.o.Name] = own
	now := status.Compare(all)
	before := n.differences.Swap(&now)
	n.logDifferences(before, now)
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
