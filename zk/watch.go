package zk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"sequins/internal/sleep"
	"sequins/zk/internal/wire"
)

const (
	// warnListing is the size in bytes of a listing above which a warning is logged: half of what ZooKeeper's own
	// clients read by default. Servers have no limit.
	warnListing = 512 << 10
	// minInterval is the minimum time between two listings of a small directory.
	minInterval = 50 * time.Millisecond
)

// Entry is one child of a directory.
type Entry struct {
	Name string
	Data []byte // nil if not readable; read-only
	// Unreadable reports that the data cannot be read, or is larger than MaxData. The log says why.
	Unreadable bool
}

func (e Entry) equal(o Entry) bool {
	return e.Name == o.Name && bytes.Equal(e.Data, o.Data) && e.Unreadable == o.Unreadable
}

// Children is a view of a directory that is kept up to date. Changes in quick succession are read with one listing, and
// large directories are listed less often than small ones. Without a session the view keeps its entries.
type Children struct {
	s      *Session
	dir    string // absolute
	ctx    context.Context
	stop   context.CancelFunc
	update func([]Entry)

	kick      chan struct{} // capacity 1: announced was increased
	announced atomic.Int64  // changes of the directory, which may have happened
	current   atomic.Int64  // those that were listed, and update called for; -1 before the first listing

	// The fields below belong to the goroutine in follow.
	shown   []Entry          // the last entries; nil before the first listing
	members map[string]Entry // children in the last listing
	unread  map[string]bool  // children whose data must be read
	size    int              // of the last listing, in bytes
	stat    wire.Stat        // of the directory in the last listing; zero if it does not exist
}

// Watch returns a view of a directory and of the data of its children. It returns at once. A directory that does not exist is shown as empty, and
// one that is viewed already must not be viewed again before Stop. update is called with the children, ordered by name, after the first listing and after each change, one
// call after the other; it must not modify them.
//
// A view costs the servers one watch. The data of each child is read once, and again for all
// children when a known child was created anew, which is how Publish replaces data. Data changed in place is not
// noticed.
func (s *Session) Watch(dir string, update func([]Entry)) *Children {
	c := &Children{
		s: s, dir: s.absolute(dir), update: update, kick: make(chan struct{}, 1),
		members: make(map[string]Entry), unread: make(map[string]bool),
	}
	c.current.Store(-1)
	c.ctx, c.stop = context.WithCancel(s.closing)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return c
	}
	s.watched[c.dir] = c
	s.work.Go(c.follow)
	return c
}

// Current reports whether the directory has been listed, and update has been called for every change announced so far.
func (c *Children) Current() bool { return c.current.Load() == c.announced.Load() }

// Stop ends the view.
func (c *Children) Stop() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.stop()
	if c.s.watched[c.dir] == c {
		delete(c.s.watched, c.dir)
	}
}

// notify invalidates the view of a path whose watch has fired.
func (s *Session) notify(p string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.watched[p]; c != nil {
		c.invalidate()
	}
}

// invalidate schedules a listing of the directory.
func (c *Children) invalidate() {
	c.announced.Add(1)
	sleep.Wake(c.kick)
}

// follow keeps the view up to date until it is stopped.
func (c *Children) follow() {
	failures := 0
	for {
		conn := c.s.await(c.ctx)
		if conn == nil {
			return
		}
		announced := c.announced.Load()
		if err := c.refresh(conn, announced); err != nil {
			failures++
			c.s.recordError("listing "+c.dir, err)
			if !errors.Is(err, wire.ErrLost) && c.ctx.Err() == nil {
				c.s.logLimited("listing", slog.LevelError, "zookeeper: cannot list directory; will retry", "dir", c.dir, "error", err)
			}
			if sleep.For(c.ctx, sleep.Backoff(failures, minRetry, maxRetry)) != nil {
				return
			}
			continue
		}
		failures = 0
		again := c.updateEntries()
		c.current.Store(announced)
		select {
		case <-c.kick:
			if sleep.For(c.ctx, damping(c.size)) != nil {
				return
			}
		case <-again:
		case <-c.ctx.Done():
			return
		}
	}
}

// damping returns the delay between a change and the next listing, given the size in bytes of the last listing. The
// listing sets the watch again, so further changes cost nothing and the directory is listed at most once per delay. A
// large directory that changes all the time is read at half of readBudget, up to all of it: the delay is random, so
// that nodes do not list at the same moment.
func damping(size int) time.Duration {
	interval := max(minInterval, time.Duration(size)*time.Second/readBudget)
	return interval + rand.N(interval)
}

// refresh reads what may have changed.
func (c *Children) refresh(conn *wire.Conn, announced int64) error {
	if c.current.Load() != announced {
		if err := c.list(conn); err != nil {
			return err
		}
	}
	return c.read(conn)
}

// list reads the names of the children and sets a watch, and notes the children whose data must be read.
func (c *Children) list(conn *wire.Conn) error {
	if err := c.s.budget.WaitN(c.ctx, min(c.size, readBurst)); err != nil {
		return err
	}
	names, stat, err := c.childrenOrNone(conn)
	if err != nil {
		return err
	}
	members := make(map[string]Entry, len(names))
	size, added := 0, 0
	for _, name := range names {
		e, known := c.members[name]
		if !known {
			e.Name = name
			added++
			c.unread[name] = true
		}
		members[name] = e
		size += 4 + len(name)
	}
	// The servers count in cversion each child created or deleted. If more were created than there are new names, a known one was created anew.
	created := (stat.Cversion - c.stat.Cversion + stat.NumChildren - c.stat.NumChildren) / 2
	if stat.Czxid != c.stat.Czxid || int(created) != added {
		for _, name := range names {
			c.unread[name] = true
		}
	}
	c.warnLarge(size, len(names))
	c.members, c.size, c.stat = members, size, stat
	return nil
}

// childrenOrNone lists the directory, or sets a watch for its creation.
func (c *Children) childrenOrNone(conn *wire.Conn) (names []string, stat wire.Stat, err error) {
	names, stat, err = conn.Children(c.dir, true)
	if !errors.Is(err, wire.NoNode) {
		return names, stat, err
	}
	if exists, err := conn.Exists(c.dir); err != nil || !exists {
		return nil, wire.Stat{}, err
	}
	return conn.Children(c.dir, true) // it was created just now
}

// read reads the data of children. The error is a connection error; data that cannot be read for other
// reasons is nil.
func (c *Children) read(conn *wire.Conn) error {
	group, reading := errgroup.WithContext(c.ctx) // ends with the connection
	group.SetLimit(inFlight)
	var mu sync.Mutex // guards members and unread
	for _, name := range slices.Collect(maps.Keys(c.unread)) {
		if err := c.s.reads.Wait(reading); err != nil {
			return errors.Join(err, group.Wait())
		}
		group.Go(func() error {
			data, _, err := conn.Get(c.dir + "/" + name)
			if errors.Is(err, wire.ErrLost) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			c.setData(name, data, err)
			return nil
		})
	}
	return group.Wait()
}

// setData records the data of a child, or why it has none.
func (c *Children) setData(name string, data []byte, err error) {
	delete(c.unread, name)
	if _, member := c.members[name]; !member {
		return
	}
	if errors.Is(err, wire.NoNode) { // the next listing omits it
		delete(c.members, name)
		return
	}
	if err == nil && len(data) > MaxData {
		err = fmt.Errorf("%d bytes of data", len(data))
	}
	if err != nil {
		c.s.logLimited("ignored", slog.LevelWarn, "zookeeper: ignoring znode", "dir", c.dir, "name", name, "error", err)
		data = nil
	}
	c.members[name] = Entry{name, data, err != nil}
}

// updateEntries calls update if the entries differ from those that are shown.
//
// For some time after a session was lost, vanished children are kept: the sessions of other nodes probably ended for
// the same reason, and they publish again, too. Then updateEntries returns a channel that receives when it has to be
// called again.
func (c *Children) updateEntries() (again <-chan time.Time) {
	next := slices.AppendSeq(make([]Entry, 0, len(c.members)), maps.Values(c.members))
	if left := c.s.settleTime(); left > 0 {
		for _, e := range c.shown {
			if _, member := c.members[e.Name]; !member {
				next = append(next, e)
			}
		}
		again = time.After(left)
	}
	slices.SortFunc(next, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	if c.ctx.Err() == nil && (c.shown == nil || !slices.EqualFunc(c.shown, next, Entry.equal)) {
		c.shown = next
		c.update(next)
	}
	return again
}

// settleTime returns for how long znodes of other nodes' lost sessions may still be published again.
func (s *Session) settleTime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions < 2 {
		return 0
	}
	return time.Until(s.began.Add(s.settle))
}

func (c *Children) warnLarge(size, n int) {
	if size >= warnListing {
		c.s.logLimited("large", slog.LevelWarn, "zookeeper: large directory: above 1 MiB, ZooKeeper's own clients and tools cannot list it "+
			"unless their jute.maxbuffer is raised, and every node reads it again after a change; use fewer partitions per version or a lower replication",
			"dir", c.dir, "bytes", size, "children", n)
	}
}
