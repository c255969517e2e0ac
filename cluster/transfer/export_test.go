package transfer

import (
	"context"
	"time"

	"sequins/shard"
	"sequins/store"
)

var (
	ErrRefused   = errRefused
	ErrElsewhere = errElsewhere
	ErrBusy      = errBusy
	ErrDisk      = errDisk
)

// Expect changes what the other side of a copy has to send or receive.
func (t *Transfer) Expect(rate float64, patience time.Duration) {
	t.leastRate, t.patience = rate, patience
}

// Fetch copies a block.
func (t *Transfer) Fetch(ctx context.Context, addr string, dir *store.Dir, partition int, by shard.Partitioner) error {
	return t.fetch(ctx, addr, dir, partition, by)
}

// Hurry changes how long a Run waits for other nodes.
func (r *Run) Hurry(silent, busy, poll time.Duration) { r.times = times{silent, busy, poll} }
