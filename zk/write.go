package zk

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

const (
	// inFlight is how many requests are under way at once where there are many to make.
	inFlight = 32
	// maxRaces is how often one write is begun anew because somebody else was there between two of its steps.
	maxRaces = 5
)

// write carries out a batch and leaves in each write what became of it. It returns the session that it was done in.
//
// What is new is created in one request, which is done entirely or not at all. When something stands in the way, each
// znode is looked at and dealt with by itself, many at a time.
func (s *Session) write(conn *zk.Conn, batch []*write) (id int64) {
	id = conn.SessionID()
	if s.createAll(conn, batch) == nil {
		return id
	}
	var group errgroup.Group
	group.SetLimit(inFlight)
	for _, w := range batch {
		group.Go(func() error {
			w.err = s.writeOne(conn, w)
			return nil
		})
	}
	_ = group.Wait()
	return id
}

var errNotFresh = errors.New("something may be there")

// createAll creates all of a batch at once, or nothing.
func (s *Session) createAll(conn *zk.Conn, batch []*write) error {
	ops := make([]any, len(batch))
	for i, w := range batch {
		if !w.wanted || !w.fresh {
			return errNotFresh
		}
		ops[i] = s.creation(w)
	}
	_, err := conn.Multi(ops...)
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if err := s.makeParents(conn, batch); err != nil {
		return err
	}
	_, err = conn.Multi(ops...)
	return err
}

func (s *Session) creation(w *write) *zk.CreateRequest {
	return &zk.CreateRequest{Path: w.path, Data: w.data, Acl: s.acl, Flags: zk.FlagEphemeral}
}

func (s *Session) makeParents(conn *zk.Conn, batch []*write) error {
	made := map[string]bool{}
	for _, w := range batch {
		dir := path.Dir(w.path)
		if made[dir] {
			continue
		}
		if err := s.makeDir(conn, dir); err != nil {
			return err
		}
		made[dir] = true
	}
	return nil
}

// makeDir makes a persistent znode, and those above it.
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

// writeOne looks at one znode and makes it what it should be.
func (s *Session) writeOne(conn *zk.Conn, w *write) error {
	var err error
	for range maxRaces {
		err = s.tryOne(conn, w)
		switch {
		case errors.Is(err, zk.ErrNoNode) && w.wanted: // its parent is gone, or what we were about to replace
			err = s.makeDir(conn, path.Dir(w.path))
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
			err = zk.ErrNoNode
		case errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrBadVersion):
		default:
			return err
		}
	}
	return fmt.Errorf("others change it all the time: %w", err)
}

func (s *Session) tryOne(conn *zk.Conn, w *write) error {
	data, stat, err := conn.Get(w.path)
	absent := errors.Is(err, zk.ErrNoNode)
	if err != nil && !absent {
		return err
	}
	ours := !absent && stat.EphemeralOwner == conn.SessionID()
	switch {
	case !w.wanted && !ours:
		return nil
	case !w.wanted:
		return s.remove(conn, w.path, stat.Version)
	case absent:
		_, err := conn.Multi(s.creation(w))
		return err
	case !ours:
		return s.takeOver(conn, w, stat)
	case !bytes.Equal(data, w.data):
		_, err := conn.Set(w.path, w.data, stat.Version)
		return err
	}
	return nil
}

func (s *Session) remove(conn *zk.Conn, path string, version int32) error {
	err := conn.Delete(path, version)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// takeOver replaces a znode of ours that belongs to another session, in one step: nobody sees it missing. The name has
// our address in it, so that session is a former one of ours: of this process before it was killed, or before its
// session ended. The ensemble will end it sooner or later; to wait for that would be to leave a gap just then.
func (s *Session) takeOver(conn *zk.Conn, w *write, stat *zk.Stat) error {
	_, err := conn.Multi(&zk.DeleteRequest{Path: w.path, Version: stat.Version}, s.creation(w))
	if err == nil {
		s.say("taken over", slog.LevelInfo, "zookeeper: taken over from another session; if this goes on, two nodes have the same address",
			"path", w.path, "owner", fmt.Sprintf("%#x", stat.EphemeralOwner))
	}
	return err
}

// prune removes directories that are empty.
func (s *Session) prune(conn *zk.Conn) {
	s.mu.Lock()
	prunes := s.prunes
	s.prunes = make(map[string]bool)
	s.mu.Unlock()
	for dir := range prunes {
		err := conn.Delete(dir, -1)
		if err != nil && !errors.Is(err, zk.ErrNotEmpty) && !errors.Is(err, zk.ErrNoNode) {
			s.failed("pruning "+dir, err)
		}
	}
}
