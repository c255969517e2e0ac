package zk

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"sequins/zk/internal/wire"
)

const (
	// inFlight is the maximum number of concurrent requests.
	inFlight = 32
	// maxRaces is the maximum number of attempts after concurrent changes by other nodes.
	maxRaces = 3
	// againRate and againBurst bound the requests, about, of failed batches that are written again without a backoff, per second and at once.
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

// write applies a batch and sets the result of each write. A batch is one atomic request. After a race it is repeated, and if it fails because of one
// write, it is halved until that write is alone, as far as againRate allows.
func (s *Session) write(conn *wire.Conn, batch []*write) {
	var err error
	for range maxRaces {
		if err = s.attempt(conn, batch); !isRace(err) || !s.mayRepeat(batch) {
			break
		}
	}
	if err != nil && !errors.Is(err, wire.ErrLost) && len(batch) > 1 && s.mayRepeat(batch) {
		half := len(batch) / 2
		s.write(conn, batch[:half])
		s.write(conn, batch[half:])
		return
	}
	for _, w := range batch {
		w.err = cmp.Or(w.err, err)
	}
}

// mayRepeat reports whether a batch may be written again at once.
func (s *Session) mayRepeat(batch []*write) bool {
	const others = 10 // the transaction twice, and missing directories
	return s.again.AllowN(time.Now(), len(batch)+others)
}

// attempt reads what there is and applies a batch.
func (s *Session) attempt(conn *wire.Conn, batch []*write) error {
	if err := s.readExisting(conn, batch); err != nil {
		return err
	}
	return s.commit(conn, batch)
}

// isRace reports whether a request failed because of a concurrent change.
func isRace(err error) bool {
	return errors.Is(err, wire.NoNode) || errors.Is(err, wire.NodeExists) || errors.Is(err, wire.BadVersion)
}

// readExisting reads the znodes that exist at the batch's paths. The error is a connection error; errors of a single path are set in its write.
func (s *Session) readExisting(conn *wire.Conn, batch []*write) error {
	var group errgroup.Group
	group.SetLimit(inFlight)
	for _, w := range batch {
		w.err, w.found = nil, existing{nothing: true}
		group.Go(func() error {
			data, stat, err := conn.Get(w.path)
			switch {
			case err == nil:
				w.found = existing{owner: stat.EphemeralOwner, ours: stat.EphemeralOwner == conn.SessionID(), version: stat.Version, data: data}
			case errors.Is(err, wire.NoNode):
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
		s.logReplaced(batch)
	}
	return err
}

// operations returns the operations that bring a znode to its desired state.
//
// A znode of another session is replaced in one transaction, so that it is never missing. Its name contains this node's
// address, so that session is an earlier one of this node. Waiting for the ensemble to end it would cause a gap at that
// time.
//
// Data is replaced in the same way: then the directory changes, too, of which its watch tells.
func (s *Session) operations(w *write) []wire.Op {
	remove := wire.Delete{Path: w.path, Version: w.found.version}
	create := wire.Create{Path: w.path, Data: w.data, ACL: s.acl, Ephemeral: true}
	switch {
	case w.taken():
		return nil
	case w.wanted && w.found.nothing:
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
	return w.claim && w.wanted && !w.found.nothing && !w.found.ours && !bytes.Equal(w.found.data, w.data)
}

// logReplaced logs which znodes of other sessions were replaced, and which published ones were gone.
func (s *Session) logReplaced(batch []*write) {
	for _, w := range batch {
		if w.err != nil || !w.wanted || len(s.operations(w)) == 0 {
			continue
		}
		if w.state == unchecked {
			s.logLimited("lost", slog.LevelWarn, "zookeeper: a published znode was deleted or replaced; it is published again", "path", w.path)
		}
		if !w.found.nothing && !w.found.ours {
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

// prune removes the directories of one call of Prune, and reports whether there was one.
func (s *Session) prune(conn *wire.Conn) bool {
	s.mu.Lock()
	var dir string
	var doomed func(string) bool
	for dir, doomed = range s.prunes {
		delete(s.prunes, dir)
		break
	}
	s.mu.Unlock()
	if doomed == nil {
		return false
	}
	names, _, err := conn.Children(dir, false)
	for _, name := range names {
		if err == nil && doomed(name) {
			err = removeEmpty(conn, dir+"/"+name)
		}
	}
	if err == nil {
		err = removeEmpty(conn, dir)
	}
	switch {
	case errors.Is(err, wire.ErrLost):
		s.pruneLater(dir, doomed)
	case err != nil && !errors.Is(err, wire.NoNode):
		s.recordError("pruning "+dir, err)
	}
	return true
}

// removeEmpty removes a znode unless it has children.
func removeEmpty(conn *wire.Conn, path string) error {
	err := conn.Multi(wire.Delete{Path: path, Version: -1})
	if errors.Is(err, wire.NotEmpty) || errors.Is(err, wire.NoNode) {
		return nil
	}
	return err
}

// audit has published znodes read again. They are not watched, and another client may have deleted one.
func (s *Session) audit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, z := range s.desired {
		if z.state == settled {
			z.state = unchecked
		}
	}
}
