package peerstatus

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"sequins/internal/sleep"
	"sequins/observe/status"
)

const (
	// settingsPeriod is the interval at which the settings of the nodes are compared.
	settingsPeriod = 30 * time.Second
	// firstSettings is the time of the first comparison after the start: nodes that start together are there by then.
	firstSettings = 5 * time.Second
)

// A Comparer compares the settings of this node with those of the others. Differences may be called by any goroutine.
type Comparer struct {
	client      *Client
	name        string
	own         func() status.Settings
	log         *slog.Logger
	differences atomic.Pointer[[]status.Difference]
}

// NewComparer returns a comparer for the node with a name, whose settings are own.
func NewComparer(client *Client, name string, own func() status.Settings, log *slog.Logger) *Comparer {
	c := &Comparer{client: client, name: name, own: own, log: log}
	c.differences.Store(new([]status.Difference))
	return c
}

// Differences returns the differences at the last comparison.
func (c *Comparer) Differences() []status.Difference { return *c.differences.Load() }

// Run compares until ctx ends.
func (c *Comparer) Run(ctx context.Context) {
	for wait := firstSettings; sleep.For(ctx, wait) == nil; wait = settingsPeriod {
		all := c.client.Settings(ctx) // of nodes that do not answer, they are unknown, and no difference
		if ctx.Err() != nil {
			return
		}
		all[c.name] = c.own()
		now := status.Compare(all)
		c.logChanges(*c.differences.Swap(&now), now)
	}
}

// logChanges logs each difference once, again when it changes, and when it is resolved.
func (c *Comparer) logChanges(before, now []status.Difference) {
	resolved := make(map[string]string)
	for _, d := range before {
		resolved[d.Setting] = d.String()
	}
	for _, d := range now {
		level := slog.LevelWarn
		if !d.IsFault() {
			level = slog.LevelInfo
		}
		if resolved[d.Setting] != d.String() {
			c.log.Log(context.Background(), level, "the nodes of the cluster are configured differently", "setting", d.Setting, "values", d.String())
		}
		delete(resolved, d.Setting)
	}
	for setting := range resolved {
		c.log.Info("the nodes of the cluster are configured alike again", "setting", setting)
	}
}
