package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/content"
	"sequins/internal/sleep"
	"sequins/node/turns"
	"sequins/version/discovery"
)

// shared is what the databases of a node share.
type shared struct {
	o          Options
	log        *slog.Logger
	reloadable atomic.Pointer[Reloadable]
	transfer   *transfer.Transfer
	health     *discovery.Health

	turns     *turns.Queue              // of loads
	listings  chan struct{}             // one entry per running listing of versions
	admission atomic.Pointer[time.Time] // since when requests for keys are admitted; nil: they are not
	serving   chan struct{}             // closed when this node has joined, too; then loads begin
	joined    atomic.Bool               // the same
	looked    atomic.Bool               // the first listing of the source has ended, with or without an error
	listed    atomic.Bool               // the source was read: its dbs are in the catalog
	asked     atomic.Int64              // how often Refresh was called
	refresh   chan struct{}             // Refresh was called

	following sync.WaitGroup // the follower, all dbs, and the upkeep of blocks
	// patience is canceled when the shutdown stops waiting for readers of versions.
	patience context.Context //nolint:containedctx // see there
}

// taker returns what copies blocks from other nodes; nil if they are only loaded.
func (s *shared) taker() *transfer.Transfer {
	if s.o.Server.Peers == nil || !s.reloadable.Load().FromPeers {
		return nil
	}
	return s.transfer
}

// admitted returns since when requests for keys are admitted; zero: they are not.
func (s *shared) admitted() time.Time {
	if at := s.admission.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// alone reports whether there are no other nodes, and never will be.
func (s *shared) alone() bool { return s.o.Cluster.Changes() == nil }

// others returns the addresses of the other nodes.
func (s *shared) others() (addrs []string) {
	if s.o.Server.Peers != nil {
		for _, p := range s.o.Server.Peers() {
			addrs = append(addrs, p.Addr)
		}
	}
	return addrs
}

// askServing asks other nodes what they serve, by their addresses and the names of databases.
func (s *shared) askServing(ctx context.Context, addrs []string) map[string]map[string]content.Content {
	serving, _ := s.transfer.Serving(ctx, addrs)
	return serving
}

// sourceFailed records that the source or a db of it could not be listed within the timeout of ctx.
func (s *shared) sourceFailed(ctx context.Context, timeout time.Duration, db string, err error) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) { // err can also be that of a connection, which ends earlier
		err = fmt.Errorf("not listed within %v: %w", timeout, err)
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) { // otherwise the node is shutting down
		s.health.Fail(db, err)
	}
}

// Refresh makes the node list the source soon, and compare what is served with the source.
func (s *shared) Refresh() {
	s.asked.Add(1)
	sleep.Wake(s.refresh)
}

// MayExist implements server.Catalog. A node that was never able to read the source cannot know that a
// db does not exist, and another node may have found the db earlier.
func (s *shared) MayExist(db []byte) bool {
	return !s.listed.Load() || s.o.Cluster.Knows(string(db))
}

const (
	// startTimeout limits the first listing of the source, and the first listing of the versions of
	// each db. Until then the node serves what it served before, and is not ready.
	startTimeout = 15 * time.Second
	// listTimeout limits one listing of the source.
	listTimeout = 2 * time.Minute
	// maxListings is the number of databases whose versions are listed in parallel.
	maxListings = 32
	// minBackoff and maxBackoff limit the pauses before what has failed is tried again.
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// passingAttempts is how many failed attempts for a version count as a permanent failure, if the failures may be temporary.
const passingAttempts = 3

// seconds rounds a time to seconds, for the status JSON.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
