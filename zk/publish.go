package zk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path"
	"time"

	"sequins/internal/sleep"
	"sequins/zk/internal/wire"
)

const (
	// MaxData is the maximum size of a znode's data in bytes, both written and read.
	MaxData = 64 << 10

	// maxWrites is the number of znodes in a batch. After each batch, the znodes that differ from what is desired are determined again.
	maxWrites = 500

	// maxPaths bounds the bytes of the paths that a session publishes, counting four for the length of each. When a
	// session ends, one transaction names all its ephemerals, and a server whose log contains a transaction over 2 MiB
	// does not start again (unless jute.maxbuffer is raised). Above warnPaths a warning is logged.
	maxPaths  = 3 << 19
	warnPaths = 1 << 20

	minRetry = 250 * time.Millisecond
	maxRetry = 30 * time.Second
)

// znode is the desired state of one path. A change of it is another znode: what was written is still desired if the znode is.
type znode struct {
	path string // absolute
	data []byte
	kind kind

	// The fields below are guarded by Session.mu.
	state    znodeState
	failures int
	taken    bool      // it is a claim, and the last attempt found another node's znode
	retry    time.Time // earliest time of the next attempt
	err      string    // error of the last attempt
}

// kind is what is done to a znode that exists already.
type kind int

const (
	published  kind = iota // it is replaced: see Publish
	claimed                // another node's znode is left alone: see Claim
	persistent             // it is left alone, and forgotten: see Create
	unwanted               // it is deleted if it is of this session, and forgotten: see Unpublish
)

// znodeState is whether a path is in its desired state in ZooKeeper.
type znodeState int

const (
	// due: it may differ. Next: settled.
	due znodeState = iota
	// settled: it was in its desired state when it was written or read last. Next: due, unchecked.
	settled
	// unchecked: it was settled, and is read again, see checkPublished. Next: due, settled.
	unchecked
)

// Publish keeps a znode with this data in ZooKeeper until Unpublish or Close. The path is relative to the root; its
// parents are created. Data is truncated to MaxData. Publish returns at once. Publishing the same again changes
// nothing; other data replaces the znode's.
func (s *Session) Publish(path string, data []byte) { s.set(path, data, published) }

// Create creates a persistent znode without data, unless it exists. It returns at once, and tries until it has
// succeeded. A znode that somebody deletes later is not created again.
func (s *Session) Create(path string) { s.set(path, nil, persistent) }

// Unpublish deletes a published path. It returns at once.
func (s *Session) Unpublish(path string) { s.set(path, nil, unwanted) }

// set records the desired state of a path, unless it is that already, or the session is closed.
func (s *Session) set(path string, data []byte, k kind) *znode {
	z := &znode{path: s.absolute(path), data: bytes.Clone(data[:min(len(data), MaxData)]), kind: k}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch old := s.desired[z.path]; {
	case s.closing.Err() != nil, old == nil && k == unwanted:
		return z
	case old != nil && old.kind == k && k != persistent && bytes.Equal(old.data, z.data): // a persistent one may have been deleted while it is written
		return old
	}
	s.desired[z.path] = z
	s.broadcast()
	return z
}

// ErrTaken is returned by Claim for a znode that another node holds.
var ErrTaken = errors.New("zk: another node has this znode")

// Claim publishes a znode like Publish, unless another session holds it with other data: then Claim changes nothing and
// returns ErrTaken. A znode with the same data is taken over, as data names the node. Claim blocks until the answer is
// known, the session is closed (ErrClosed) or ctx ends.
//
// A claim is renewed with each new session. If another node holds the znode by then, it keeps it; the claim is renewed
// when the znode is free.
func (s *Session) Claim(ctx context.Context, path string, data []byte) error {
	z := s.set(path, data, claimed)
	taken := false
	err := s.until(ctx, func() bool {
		taken = z.taken
		return z.state != due
	})
	if err == nil && taken {
		err = ErrTaken
	}
	if err != nil {
		s.Unpublish(path)
	}
	return err
}

// Prune removes the empty directories in dir, and dir itself if it is empty then, in the background and after everything that is unpublished has been
// withdrawn. No error is reported. A path that is published in a directory meanwhile creates it again. Nodes that share a directory prune it when each
// of them has withdrawn what it had there, so the last one removes it.
func (s *Session) Prune(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prunes[s.absolute(dir)] = true
	s.broadcast()
}

func (s *Session) absolute(rel string) string { return path.Join(s.o.Root, rel) }

// reconcile applies the desired state until the Session is closed.
func (s *Session) reconcile() {
	audit := time.NewTicker(s.audit/2 + rand.N(s.audit) + 1) // random, so that nodes do not read in step
	defer audit.Stop()
	for {
		conn := s.await(s.closing)
		if conn == nil {
			return
		}
		s.mu.Lock()
		batch, wait := s.nextBatch(time.Now())
		changed := s.changed
		s.mu.Unlock()
		if len(batch) > 0 {
			id := conn.SessionID()
			s.write(conn, batch)
			if failed := s.record(batch, id); failed {
				_ = sleep.For(s.closing, minRetry) // what is due by then is one batch
			}
			continue
		}
		if s.prune(conn) {
			continue // with what is due by now
		}
		retry := time.NewTimer(wait)
		select {
		case <-changed:
		case <-retry.C:
		case <-audit.C:
			s.checkPublished()
		case <-s.closing.Done():
		}
		retry.Stop()
	}
}

// nextBatch returns the next writes, or how long to wait if there are none. s.mu is held.
func (s *Session) nextBatch(now time.Time) (batch []*write, wait time.Duration) {
	wait = maxRetry
	budget := s.pathBudget()
	for _, z := range s.desired {
		switch d := z.retry.Sub(now); {
		case z.state == settled:
			continue
		case d > 0:
			wait = min(wait, d)
			continue
		case z.state == due && z.kind != unwanted && budget < len(z.path)+4:
			s.scheduleRetry(z, errTooMany, now)
			continue
		case len(batch) == maxWrites:
			return batch, 0
		}
		if z.state == due {
			budget -= len(z.path) + 4
		}
		batch = append(batch, &write{znode: z, again: z.state == unchecked})
	}
	return batch, wait
}

var errTooMany = fmt.Errorf("this node publishes more than %d KiB of paths, the most that is safe in one ZooKeeper session; "+
	"add nodes or use fewer partitions", maxPaths>>10)

// pathBudget returns how many bytes of paths may still be published.
func (s *Session) pathBudget() int {
	budget := maxPaths
	for _, z := range s.desired {
		if z.kind != unwanted && z.state != due {
			budget -= len(z.path) + 4
		}
	}
	if budget < maxPaths-warnPaths {
		s.logLimited("paths", slog.LevelWarn, "zookeeper: published paths are near the limit; above it, no more paths are published",
			"bytes", maxPaths-budget, "limit", maxPaths)
	}
	return budget
}

// record stores the results of a batch that was written in session id. It reports whether a write has failed.
func (s *Session) record(batch []*write, id int64) (failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, w := range batch {
		switch z := w.znode; {
		case s.desired[z.path] != z: // changed meanwhile
		case isRace(w.err) && z.failures == 0:
			z.failures++ // the next attempt is due at once
		case w.err != nil:
			s.scheduleRetry(z, w.err, now)
			failed = true
		case s.id != id: // setConnected has marked it due
		case z.kind == persistent || z.kind == unwanted:
			delete(s.desired, z.path)
		default:
			z.state, z.taken, z.failures, z.err = settled, w.taken, 0, ""
		}
	}
	s.broadcast()
	return failed
}

// scheduleRetry schedules the next attempt of a failed write: after a lost connection as soon as there is a new one,
// otherwise after a backoff.
func (s *Session) scheduleRetry(z *znode, err error, now time.Time) {
	if errors.Is(err, wire.ErrLost) {
		return
	}
	s.lastError = z.path + ": " + err.Error()
	z.failures++
	z.retry = now.Add(sleep.Backoff(z.failures, minRetry, maxRetry))
	if z.err != err.Error() && !isRace(err) {
		z.err = err.Error()
		s.logLimited("write", slog.LevelError, "zookeeper: cannot write znode; will retry", "path", z.path, "error", err)
	}
}
