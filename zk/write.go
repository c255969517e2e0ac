package zk

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"sequins/zk/internal/wire"
)

const (
	// inFlight is the maximum number of concurrent requests.
	inFlight = 32
	// maxRaces is the maximum number of attempts after concurrent changes by other nodes.
	maxRaces = 3
	// againRate and againBurst bound the requests, about, of failed batches that are written again without a backoff, per
	// second and at once: after a race, or in a divided batch.
	againRate  = 200
	againBurst = 4 * batchPaths
)

// write is one change of a znode: a copy, unaffected by later changes of the desired state.
type write struct {
	znode
	found existing
	err   error // result
}

// existing is the znode found at a path.
type existing struct {
	nothing bool
	owner   int64 // session of an ephemeral znode; 0 if persistent
	ours    bool  // owner is the current session
	version int32
	data    []byte
}

// write applies a batch and sets the result of each write. A batch is one atomic request. If it fails because of one
// write, the batch is split until that write is alone, or as far as againRate allows.
func (s *Session) write(conn *wire.Conn, batch []*write) {
	if batch[0].fresh { // then all are
		if err := s.commit(conn, batch); err == nil {
			return
		}
		for _, w := range batch {
			w.fresh = false
		}
	}
	s.writeOrDivide(conn, batch)
}

func (s *Session) writeOrDivide(conn *wire.Conn, batch []*write) {
	var err error
	for range maxRaces {
		if err = s.readExisting(conn, batch); err == nil {
			err = s.commit(conn, batch)
		}
		if !isRace(err) || !s.mayRepeat(batch) {
			break
		}
	}
	if err != nil && !errors.Is(err, wire.ErrLost) && len(batch) > 1 && s.mayRepeat(batch) {
		half := len(batch) / 2
		s.writeOrDivide(conn, batch[:half])
		s.writeOrDivide(conn, batch[half:])
		return
	}
	for _, w := range batch {
		if w.err == nil {
			w.err = err
		}
	}
}

// mayRepeat reports whether a batch may be written again at once.
func (s *Session) mayRepeat(batch []*write) bool {
	const others = 10 // the transaction twice, and missing directories
	return s.again.AllowN(time.Now(), len(batch)+others)
}

// isRace reports whether a request failed because of a concurrent change.
func isRace(err error) bool {
	return errors.Is(err, wire.NoNode) || errors.Is(err, wire.NodeExists) || errors.Is(err, wire.BadVersion)
}

// readExisting reads the znodes that exist at the batch's paths. The error is a connection error; errors of a single
// path are set in its write.
func (s *Session) readExisting(conn *wire.Conn, batch []*write) error {
	var group errgroup.Group
	group.SetLimit(inFlight)
	for _, w := range batch {
		group.Go(func() error {
			data, stat, err := conn.Get(w.path)
			w.err = nil
			switch {
			case err == nil:
				w.found = existing{owner: stat.EphemeralOwner, ours: stat.EphemeralOwner == conn.SessionID(), version: stat.Version, data: data}
			case errors.Is(err, wire.NoNode):
				w.found = existing{nothing: true}
			case errors.Is(err, wire.ErrLost):
				return err
			default:
				w.err = err
			}
			return nil
		})
	}
	return group.Wait()
}

// commit applies a batch in one request, after creating the missing directories.
func (s *Session) commit(conn *wire.Conn, batch []*write) error {
	var ops []wire.Op
	for _, w := range batch {
		if w.err == nil {
			ops = append(ops, s.operations(w)...)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	err := conn.Multi(ops...)
	if errors.Is(err, wire.NoNode) {
		if err := s.makeParents(conn, batch); err != nil {
			return err
		}
		err = conn.Multi(ops...)
	}
	if err == nil {
		s.logTakeovers(batch)
	}
	return err
}

// operations returns the operations that bring a znode to its desired state.
//
// A znode of another session is replaced in one transaction, so that it is never missing. Its name contains this node's
// address, so that session is an earlier one of this node. Waiting for the ensemble to end it would cause a gap at that
// time.
//
// Data is replaced in the same way: then the directory changes, too, so the change cannot be missed, see
// Children.check.
func (s *Session) operations(w *write) []wire.Op {
	remove := wire.Delete{Path: w.path, Version: w.found.version}
	create := wire.Create{Path: w.path, Data: w.data, ACL: s.acl, Ephemeral: true}
	switch {
	case w.taken():
		return nil
	case w.fresh || w.wanted && w.found.nothing:
		return []wire.Op{create}
	case w.wanted && w.found.ours && bytes.Equal(w.found.data, w.data):
		return nil
	case w.wanted:
		return []wire.Op{remove, create}
	case w.found.ours:
		return []wire.Op{remove}
	}
	return nil // not wanted, and not ours: another node published it
}

// taken reports whether the znode is claimed and another node holds it.
func (w *write) taken() bool {
	return w.claim && w.wanted && !w.fresh && !w.found.nothing && !w.found.ours && !bytes.Equal(w.found.data, w.data)
}

// logTakeovers logs that znodes of other sessions were replaced.
func (s *Session) logTakeovers(batch []*write) {
	for _, w := range batch {
		if w.err == nil && !w.fresh && w.wanted && !w.found.nothing && !w.found.ours && !w.taken() {
			s.logLimited("taken over", slog.LevelInfo, "zookeeper: replaced znodes of an earlier session; if this repeats, two nodes have the same address",
				"path", w.path, "owner", fmt.Sprintf("%#x", w.found.owner))
		}
	}
}

func (s *Session) makeParents(conn *wire.Conn, batch []*write) error {
	made := map[string]bool{}
	for _, w := range batch {
		dir := path.Dir(w.path)
		if !w.wanted || w.err != nil || made[dir] {
			continue
		}
		if err := s.makeDir(conn, dir); err != nil {
			return err
		}
		made[dir] = true
	}
	return nil
}

// makeDir creates a persistent znode and its parents. A concurrent Prune may remove one of them: that is a race.
func (s *Session) makeDir(conn *wire.Conn, dir string) error {
	if dir == "/" {
		return nil
	}
	err := conn.Multi(wire.Create{Path: dir, ACL: s.acl})
	if errors.Is(err, wire.NoNode) {
		if err := s.makeDir(conn, path.Dir(dir)); err != nil {
			return err
		}
		err = conn.Multi(wire.Create{Path: dir, ACL: s.acl})
	}
	if err != nil && !errors.Is(err, wire.NodeExists) {
		return fmt.Errorf("creating %s: %w", dir, err)
	}
	return nil
}

// prune removes directories that are empty, each before the one that it is in.
func (s *Session) prune(conn *wire.Conn) {
	s.mu.Lock()
	var dirs []string
	if s.pruneDue {
		dirs = slices.Sorted(maps.Keys(s.prunes))
	}
	s.pruneDue = false
	s.mu.Unlock()
	for _, dir := range slices.Backward(dirs) {
		err := conn.Multi(wire.Delete{Path: dir, Version: -1})
		s.mu.Lock()
		switch {
		case errors.Is(err, wire.ErrLost):
			s.pruneDue = true
		case errors.Is(err, wire.NotEmpty) && s.prunes[dir] > 1:
			s.prunes[dir]--
		default:
			delete(s.prunes, dir)
		}
		s.mu.Unlock()
		if err != nil && !errors.Is(err, wire.NotEmpty) && !errors.Is(err, wire.NoNode) {
			s.recordError("pruning "+dir, err)
		}
	}
}

// audit checks that published znodes still exist. They are not watched, and another client may have deleted one.
func (s *Session) audit(conn *wire.Conn) {
	var all []*write
	s.mu.Lock()
	for _, z := range s.desired {
		if s.dirty[z.path] == nil {
			all = append(all, &write{znode: *z})
		}
	}
	s.mu.Unlock()
	if err := s.readExisting(conn, all); err != nil {
		return // the next audit will find it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range all {
		z := s.desired[w.path]
		if w.err == nil && len(s.operations(w)) > 0 && z != nil && z.change == w.change {
			s.markDirty(z)
			s.logLimited("lost", slog.LevelWarn, "zookeeper: a published znode was deleted or replaced; publishing it again", "path", w.path)
		}
	}
}
