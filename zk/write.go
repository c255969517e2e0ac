package zk

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path"

	"golang.org/x/sync/errgroup"

	"sequins/zk/internal/wire"
)

// inFlight is the maximum number of concurrent requests.
const inFlight = 32

// write is one write of a znode.
type write struct {
	*znode
	again bool  // it was in its desired state before
	taken bool  // result: see znode
	err   error // result
}

// write brings znodes to their desired states, and sets the result of each. Directories that are missing are made, for the next attempt.
func (s *Session) write(conn *wire.Conn, batch []*write) {
	var group errgroup.Group
	group.SetLimit(inFlight)
	for _, w := range batch {
		group.Go(func() error {
			w.err = s.writeZnode(conn, w)
			return nil
		})
	}
	_ = group.Wait() // the errors are in the writes
	made := make(map[string]error)
	for _, w := range batch {
		if w.kind == unwanted || !errors.Is(w.err, wire.NoNode) {
			continue
		}
		dir := path.Dir(w.path)
		if _, done := made[dir]; !done {
			made[dir] = s.makeDir(conn, dir)
		}
		if made[dir] != nil {
			w.err = made[dir]
		}
	}
}

// isRace reports whether a request failed because of a concurrent change.
func isRace(err error) bool {
	return errors.Is(err, wire.NoNode) || errors.Is(err, wire.NodeExists) || errors.Is(err, wire.BadVersion)
}

// writeZnode reads what there is and brings it to the desired state.
//
// A znode of another session is replaced in one transaction, so that it is never missing. Its name contains this node's
// address, so that session is an earlier one of this node. Waiting for the ensemble to end it would cause a gap at that
// time.
//
// Data is replaced in the same way: then the directory changes, too, of which its watch tells.
func (s *Session) writeZnode(conn *wire.Conn, w *write) error {
	data, stat, err := conn.Get(w.path)
	exists := err == nil
	if !exists && !errors.Is(err, wire.NoNode) {
		return err
	}
	ours, same := exists && stat.EphemeralOwner == conn.SessionID(), exists && bytes.Equal(data, w.data)
	w.taken = w.kind == claimed && exists && !ours && !same
	var ops []wire.Op
	switch {
	case w.taken:
	case w.kind == unwanted && !ours: // another node has published it
	case w.kind != unwanted && ours && same:
	case w.kind == persistent && exists:
	default:
		if exists {
			ops = append(ops, wire.Delete(w.path, stat.Version))
		}
		if w.kind != unwanted {
			ops = append(ops, wire.Create(w.path, w.data, s.acl, w.kind != persistent))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if err := conn.Multi(ops...); err != nil || w.kind == unwanted {
		return err
	}
	if w.again {
		s.logLimited("lost", slog.LevelWarn, "zookeeper: a published znode was deleted or replaced; it is published again", "path", w.path)
	}
	if exists && !ours {
		s.logLimited("taken over", slog.LevelInfo, "zookeeper: replaced znodes of an earlier session; if this repeats, two nodes have the same address",
			"path", w.path, "owner", fmt.Sprintf("%#x", stat.EphemeralOwner))
	}
	return nil
}

// makeDir creates a persistent znode and its parents. A concurrent Prune may remove one of them: that is a race.
func (s *Session) makeDir(conn *wire.Conn, dir string) error {
	create := wire.Create(dir, nil, s.acl, false)
	err := conn.Multi(create)
	if errors.Is(err, wire.NoNode) && dir != "/" {
		if err = s.makeDir(conn, path.Dir(dir)); err == nil {
			err = conn.Multi(create)
		}
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
	for dir = range s.prunes {
		delete(s.prunes, dir)
		break
	}
	s.mu.Unlock()
	if dir == "" {
		return false
	}
	names, _, err := conn.Children(dir, false)
	for _, name := range names {
		if err == nil {
			err = removeEmpty(conn, dir+"/"+name)
		}
	}
	if err == nil {
		err = removeEmpty(conn, dir)
	}
	switch {
	case errors.Is(err, wire.ErrLost):
		s.mu.Lock()
		s.prunes[dir] = true
		s.mu.Unlock()
	case err != nil && !errors.Is(err, wire.NoNode):
		s.recordError("pruning "+dir, err)
	}
	return true
}

// removeEmpty removes a znode unless it has children.
func removeEmpty(conn *wire.Conn, path string) error {
	err := conn.Multi(wire.Delete(path, -1))
	if errors.Is(err, wire.NotEmpty) || errors.Is(err, wire.NoNode) {
		return nil
	}
	return err
}

// checkPublished has published znodes read again. They are not watched, and another client may have deleted one.
func (s *Session) checkPublished() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, z := range s.desired {
		if z.state == settled {
			z.state = unchecked
		}
	}
}
