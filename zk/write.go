package zk

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

const (
	// inFlight is how many requests are under way at once where there are many to make.
	inFlight = 32
	// maxRaces is how often something is begun anew because somebody else was there between two of its steps.
	maxRaces = 3
)

// A write is what to do for one znode: a copy, which stays as it is when the znode is wanted differently meanwhile.
type write struct {
	znode
	there sight
	err   error // what became of it
}

// A sight is what stands where a znode is wanted.
type sight struct {
	nothing bool
	owner   int64 // the session that it goes with; 0 if it is persistent
	ours    bool  // that session is the present one
	version int32
	data    []byte
}

// write carries out a batch, and leaves in each write what became of it. A batch is one request, which is done
// entirely or not at all. When something stands in its way, the batch is divided until what does is alone.
func (s *Session) write(conn *zk.Conn, batch []*write) {
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

func (s *Session) writeOrDivide(conn *zk.Conn, batch []*write) {
	var err error
	for range maxRaces {
		if err = s.look(conn, batch); err == nil {
			err = s.commit(conn, batch)
		}
		if !isRace(err) {
			break
		}
	}
	if err != nil && !isConnectionError(err) && len(batch) > 1 {
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

// isRace reports whether a request failed because things were not as they had just been seen.
func isRace(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrBadVersion)
}

// look finds out what is there already. The error is one of the connection; what is wrong with a single path is left
// in its write.
func (s *Session) look(conn *zk.Conn, batch []*write) error {
	var group errgroup.Group
	group.SetLimit(inFlight)
	for _, w := range batch {
		group.Go(func() error {
			data, stat, err := conn.Get(w.path)
			w.err = nil
			switch {
			case err == nil:
				w.there = sight{owner: stat.EphemeralOwner, ours: stat.EphemeralOwner == conn.SessionID(), version: stat.Version, data: data}
			case errors.Is(err, zk.ErrNoNode):
				w.there = sight{nothing: true}
			case isConnectionError(err):
				return err
			default:
				w.err = err
			}
			return nil
		})
	}
	return group.Wait()
}

// commit does what is to be done for a batch in one request, after making the directories that are missing.
func (s *Session) commit(conn *zk.Conn, batch []*write) error {
	var ops []any
	for _, w := range batch {
		if w.err == nil {
			ops = append(ops, s.steps(w)...)
		}
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := conn.Multi(ops...)
	if errors.Is(err, zk.ErrNoNode) {
		if err := s.makeParents(conn, batch); err != nil {
			return err
		}
		_, err = conn.Multi(ops...)
	}
	if err == nil {
		s.mention(batch)
	}
	return err
}

// steps are what makes a znode what it should be.
//
// One that belongs to another session is replaced, in one step, so that nobody sees it missing. The name has our
// address in it, so that session is a former one of ours: of this process before it was killed, or before its session
// ended. The ensemble will end it sooner or later; to wait for that would be to leave a gap just then.
//
// Data is replaced in the same way: a change of the directory cannot escape those who watch it, see Children.check.
func (s *Session) steps(w *write) []any {
	remove := &zk.DeleteRequest{Path: w.path, Version: w.there.version}
	create := &zk.CreateRequest{Path: w.path, Data: w.data, Acl: s.acl, Flags: zk.FlagEphemeral}
	switch {
	case w.taken():
		return nil
	case w.fresh || w.wanted && w.there.nothing:
		return []any{create}
	case w.wanted && w.there.ours && bytes.Equal(w.there.data, w.data):
		return nil
	case w.wanted:
		return []any{remove, create}
	case w.there.ours:
		return []any{remove}
	}
	return nil // not wanted, and not ours: by now somebody else is meant
}

// taken reports whether a znode is claimed and another node has it.
func (w *write) taken() bool {
	return w.claim && w.wanted && !w.fresh && !w.there.nothing && !w.there.ours && !bytes.Equal(w.there.data, w.data)
}

// mention logs that znodes of other sessions were replaced.
func (s *Session) mention(batch []*write) {
	for _, w := range batch {
		if w.err == nil && !w.fresh && w.wanted && !w.there.nothing && !w.there.ours && !w.taken() {
			s.say("taken over", slog.LevelInfo, "zookeeper: taken over from an earlier session; if this goes on, two nodes have the same address",
				"path", w.path, "owner", fmt.Sprintf("%#x", w.there.owner))
		}
	}
}

func (s *Session) makeParents(conn *zk.Conn, batch []*write) error {
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

// makeDir makes a persistent znode, and those above it. Somebody may remove one of them at the same time, as it is
// empty: that is a race.
func (s *Session) makeDir(conn *zk.Conn, dir string) error {
	if dir == "/" {
		return nil
	}
	_, err := conn.Create(dir, nil, 0, s.acl)
	if errors.Is(err, zk.ErrNoNode) {
		if err := s.makeDir(conn, path.Dir(dir)); err != nil {
			return err
		}
		_, err = conn.Create(dir, nil, 0, s.acl)
	}
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	return nil
}

// prune removes directories that are empty, each before the one that it is in.
func (s *Session) prune(conn *zk.Conn) {
	s.mu.Lock()
	var dirs []string
	if s.pruneDue {
		dirs = slices.Sorted(maps.Keys(s.prunes))
	}
	s.pruneDue = false
	s.mu.Unlock()
	for _, dir := range slices.Backward(dirs) {
		err := conn.Delete(dir, -1)
		s.mu.Lock()
		switch {
		case isConnectionError(err):
			s.pruneDue = true
		case errors.Is(err, zk.ErrNotEmpty) && s.prunes[dir] > 1:
			s.prunes[dir]--
		default:
			delete(s.prunes, dir)
		}
		s.mu.Unlock()
		if err != nil && !errors.Is(err, zk.ErrNotEmpty) && !errors.Is(err, zk.ErrNoNode) {
			s.failed("pruning "+dir, err)
		}
	}
}

// audit looks at everything that is as it should be whether it still is. Our own znodes are not watched, and somebody
// may have deleted one.
func (s *Session) audit(conn *zk.Conn) {
	var all []*write
	s.mu.Lock()
	for _, z := range s.desired {
		if s.dirty[z.path] == nil {
			all = append(all, &write{znode: *z})
		}
	}
	s.mu.Unlock()
	if err := s.look(conn, all); err != nil {
		return // the next audit will do
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range all {
		z := s.desired[w.path]
		if w.err == nil && len(s.steps(w)) > 0 && z != nil && z.change == w.change {
			s.soil(z)
			s.say("lost", slog.LevelWarn, "zookeeper: what was published is gone or belongs to another session; it is published again", "path", w.path)
		}
	}
}
