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
)

const (
	// MaxData is the greatest size of what is published with a path, and of what is read from others.
	MaxData = 64 << 10

	// A batch is one request, of which servers take up to 1 MiB by default.
	batchPaths = 500
	batchBytes = 256 << 10

	// maxPaths bounds the paths that a session publishes, in bytes, each with four for its length. When a session
	// ends, its ephemerals are deleted by one transaction that names them all, and a server whose log has one of more
	// than 2 MiB does not start any more (unless jute.maxbuffer is raised). warnPaths is when that is warned of.
	maxPaths  = 3 << 19
	warnPaths = 1 << 20

	minRetry = 250 * time.Millisecond
	maxRetry = 30 * time.Second
)

// A znode is a path of ours as it is wanted. It belongs to the Session's mu.
type znode struct {
	path     string // absolute
	data     []byte
	wanted   bool // else it is to be deleted, and then forgotten
	claim    bool // it is left alone if it is another node's: see Claim
	change   int  // the number of the last change of the above
	fresh    bool // wanted, and presumably not there: it may be created without a look
	failures int
	taken    bool      // a claim, and by the last try another node's
	retry    time.Time // not to be tried before
	err      string    // of the last try
}

// Publish has a znode exist, with this data, as long as the session lives and until Unpublish. The path is relative to
// the root, and its parents are made. Data longer than MaxData is cut off. It returns at once; the same again changes
// nothing, other data replaces what is there.
func (s *Session) Publish(path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want(path, data, false)
}

// want notes that a znode is to exist. s.mu is held.
func (s *Session) want(path string, data []byte, claim bool) *znode {
	data = bytes.Clone(data[:min(len(data), MaxData)])
	z := s.desired[s.absolute(path)]
	switch {
	case z == nil:
		z = &znode{path: s.absolute(path), fresh: true}
		s.desired[z.path] = z
	case z.wanted && z.claim == claim && bytes.Equal(z.data, data):
		return z
	}
	z.data, z.wanted, z.claim = data, true, claim
	s.alter(z)
	return z
}

// ErrTaken is returned by Claim for a znode that is another node's.
var ErrTaken = errors.New("zk: another node has this znode")

// Claim publishes a znode like Publish, unless one with other data exists in another session: then it returns ErrTaken,
// and has changed nothing. One with the same data is taken over: data names the node. Claim waits for the answer, for
// ErrClosed, or for ctx.
//
// A claim is published again with each new session. If another node has taken it by then it stays theirs, and becomes
// ours again when it is free.
func (s *Session) Claim(ctx context.Context, path string, data []byte) error {
	s.mu.Lock()
	z := s.want(path, data, true)
	for {
		done, taken, state, changed := s.dirty[z.path] == nil, z.taken, s.state, s.changed
		s.mu.Unlock()
		var err error
		switch {
		case state == Closed:
			err = ErrClosed
		case done && taken:
			err = ErrTaken
		case done:
			return nil
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil {
			s.Unpublish(path)
			return err
		}
		s.mu.Lock()
	}
}

// Unpublish has a path that was published go. It returns at once.
func (s *Session) Unpublish(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	z := s.desired[s.absolute(path)]
	if z == nil || !z.wanted {
		return
	}
	z.data, z.wanted, z.fresh = nil, false, false
	s.alter(z)
}

// pruneAttempts is how often the removal of a directory is tried. Other nodes may withdraw what they have in it somewhat
// later; each of them prunes it, too.
const pruneAttempts = 10

// Prune removes a directory in the background if it is empty, after everything that is unpublished has been withdrawn. One
// that is not empty is tried again at each audit, up to pruneAttempts in all. No error is reported. A path that is
// published in it meanwhile creates it again.
func (s *Session) Prune(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prunes[s.absolute(dir)] = pruneAttempts
	s.pruneDue = true
	s.poke()
}

// Flush waits until the ensemble has everything as it is wanted, or ctx ends.
func (s *Session) Flush(ctx context.Context) error {
	for {
		s.mu.Lock()
		done, state, changed := s.state == Connected && len(s.dirty) == 0, s.state, s.changed
		s.mu.Unlock()
		switch {
		case done:
			return nil
		case state == Closed:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Session) absolute(rel string) string { return path.Join(s.o.Root, rel) }

// alter notes that a znode is wanted differently.
func (s *Session) alter(z *znode) {
	z.change++
	z.failures, z.retry = 0, time.Time{}
	s.dirty[z.path] = z
	s.poke()
}

// soil notes that a znode may not be as it is wanted. s.mu is held.
func (s *Session) soil(z *znode) {
	z.retry = time.Time{}
	s.dirty[z.path] = z
	s.poke()
}

func (s *Session) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// reconcile makes what is in ZooKeeper what it should be, for as long as the Session lives.
func (s *Session) reconcile() {
	audit := time.NewTicker(jitter(s.tuning.audit))
	defer audit.Stop()
	for {
		conn := s.await(s.closing)
		if conn == nil {
			return
		}
		batch, wait := s.take(time.Now())
		if len(batch) > 0 {
			id := conn.SessionID()
			s.write(conn, batch)
			s.record(batch, id)
			continue
		}
		s.prune(conn)
		retry := time.NewTimer(wait)
		select {
		case <-s.wake:
		case <-retry.C:
		case <-audit.C:
			s.audit(conn)
			s.mu.Lock()
			s.pruneDue = true
			s.mu.Unlock()
		case <-s.closing.Done():
		}
		retry.Stop()
	}
}

// take returns what to do next, or else how long there is nothing.
func (s *Session) take(now time.Time) (batch []*write, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait = maxRetry
	room := s.room()
	size := 0
	for _, z := range s.dirty {
		cost := len(z.path) + len(z.data) + 100
		switch d := z.retry.Sub(now); {
		case d > 0:
			wait = min(wait, d)
			continue
		case len(batch) > 0 && z.fresh != batch[0].fresh:
			continue
		case z.wanted && room < len(z.path)+4:
			s.postpone(z, errTooMany, now)
			continue
		case len(batch) == batchPaths || len(batch) > 0 && size+cost > batchBytes:
			return batch, 0
		}
		size += cost
		room -= len(z.path) + 4
		batch = append(batch, &write{znode: *z})
	}
	return batch, wait
}

var errTooMany = fmt.Errorf("this node publishes more than %d KiB of paths: a ZooKeeper session cannot hold more safely; "+
	"spread the partitions over more nodes, or have fewer", maxPaths>>10)

// room is how many bytes of paths may still be published.
func (s *Session) room() int {
	room := maxPaths
	for _, z := range s.desired {
		if z.wanted && s.dirty[z.path] == nil {
			room -= len(z.path) + 4
		}
	}
	if room < maxPaths-warnPaths {
		s.say("paths", slog.LevelWarn, "zookeeper: this node publishes a lot; beyond the limit nothing more is published",
			"bytes", maxPaths-room, "limit", maxPaths)
	}
	return room
}

// record notes what became of a batch that was written in a session.
func (s *Session) record(batch []*write, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, w := range batch {
		z := s.desired[w.path]
		if w.err != nil {
			s.postpone(z, w.err, now)
			continue
		}
		if s.id != id { // begin has seen to it
			continue
		}
		z.failures, z.err, z.fresh = 0, "", false
		z.taken = w.taken()
		if z.change != w.change { // wanted differently by now
			continue
		}
		delete(s.dirty, z.path)
		if !z.wanted {
			delete(s.desired, z.path)
		}
	}
	s.broadcast()
}

// postpone has a write tried again: after a lost connection as soon as there is another, else after a while.
func (s *Session) postpone(z *znode, err error, now time.Time) {
	z.fresh = false
	if isConnectionError(err) {
		return
	}
	s.lastError = z.path + ": " + err.Error()
	z.failures++
	z.retry = now.Add(backoff(z.failures))
	if z.err != err.Error() {
		z.err = err.Error()
		s.say("write", slog.LevelError, "zookeeper: a znode cannot be written; it is tried again", "path", z.path, "error", err)
	}
}

// backoff is how long to wait after so many failures in a row.
func backoff(failures int) time.Duration {
	return jitter(min(maxRetry, minRetry<<min(failures, 10)))
}

// jitter is about as long, so that many that begin together do not stay together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) + 1 }
