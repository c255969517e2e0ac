package node

import (
	"context"
	"time"

	"sequins/internal/content"
	"sequins/internal/sleep"
)

// contents returns what this node serves of each database, or served before its restart, for other nodes.
func (f *follower) contents() map[string]content.Content {
	all := make(map[string]content.Content)
	for name, d := range *f.catalog.Load() {
		if c := d.view.Load().serving; c.Name != "" {
			all[name] = c
		}
	}
	return all
}

// The pauses between questions what other nodes serve of a database of which this node serves nothing.
const (
	minAskPause = 5 * time.Second
	maxAskPause = time.Minute
)

// followServing asks what other nodes serve until ctx ends, while this node serves nothing of some database: they may serve by now
// what this node waits for in vain.
func (f *follower) followServing(ctx context.Context) {
	for asked := 1; ; asked++ {
		if sleep.For(ctx, sleep.Backoff(asked, minAskPause, maxAskPause)) != nil {
			return
		}
		var idle []*db
		for _, d := range *f.catalog.Load() {
			if d.view.Load().facts.Current.Name == "" {
				idle = append(idle, d)
			}
		}
		if len(idle) == 0 {
			asked = 0
			continue
		}
		serving := f.askServing(ctx)
		for _, d := range idle {
			d.bg.send(func() {
				if d.facts.Current.Name == "" {
					d.take(serving)
				}
			})
		}
	}
}
