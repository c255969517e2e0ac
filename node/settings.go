package node

import (
	"context"
	"log/slog"
	"maps"
	"sync/atomic"
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

// A comparer compares the settings of this node with those of the others.
type comparer struct {
	*shared
	differences atomic.Pointer[[]status.Difference] // nil before the first comparison
	resettled   chan struct{}                       // the settings of this node may have changed
}

// run compares until ctx ends, and after each reload.
func (n *comparer) run(ctx context.Context) {
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
func (n *comparer) logDifferences(before *[]status.Difference, now []status.Difference) {
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
