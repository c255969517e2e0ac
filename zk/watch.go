package zk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"sequins/internal/sleep"
)

const (
	// warnListing is the size of a listing, in bytes, that is warned of: half of what ZooKeeper's own clients read by
	// default. Servers send any size.
	warnListing = 512 << 10
	// minInterval is how soon a small directory may be listed again.
	minInterval = 50 * time.Millisecond
	// maxIgnored is of how many children of a directory it is remembered that they were logged. Of others, nothing is.
	maxIgnored = 1000
)

// An Entry is one child of a directory.
type Entry struct {
	Name string
	Data []byte // nil if it was not asked for, or cannot be read; not to be changed
}

// Children is a view of a directory that is kept up to date. It is never older than it has to be, and never newer than
// that: many changes in quick succession are seen as one, and large directories are listed less often than small ones.
// Without a session it stays as it is.
type Children struct {
	s       *Session
	dir     string // absolute
	data    bool
	ctx     context.Context
	stop    context.CancelFunc
	seen    chan struct{}
	changes chan struct{}
	entries atomic.Pointer[[]Entry]

	mu      sync.Mutex
	relist  bool            // there is no watch on the directory
	stale   map[string]bool // children whose data is not known, or not watched
	kick    chan struct{}   // capacity 1: relist or stale is another one
	ignored map[string]bool // see ignore

	// What follows belongs to the goroutine that follows the directory.
	members map[string][]byte // the children, as of the last listing
	size    int               // of that, in bytes
	pzxid   int64             // of the last change among the children that was seen; 0 if there is no directory
}

// Watch returns a view of a directory, and of the data of its children if that is asked for. It returns at once. A
// directory that does not exist is empty until it does.
func (s *Session) Watch(dir string, data bool) *Children {
	c := &Children{
		s: s, dir: s.absolute(dir), data: data,
		seen: make(chan struct{}), changes: make(chan struct{}, 1),
		relist: true, stale: make(map[string]bool), kick: make(chan struct{}, 1),
		members: make(map[string][]byte), ignored: make(map[string]bool),
	}
	c.ctx, c.stop = context.WithCancel(s.closing)
	c.entries.Store(new([]Entry))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return c
	}
	s.watched[c.dir] = append(s.watched[c.dir], c)
	s.work.Go(c.follow)
	return c
}

// Seen is closed when the directory has been listed for the first time.
func (c *Children) Seen() <-chan struct{} { return c.seen }

// Changes gets a value when Entries are others than before.
func (c *Children) Changes() <-chan struct{} { return c.changes }

// Entries returns what was seen last, by name. The result is not to be changed.
func (c *Children) Entries() []Entry { return *c.entries.Load() }

// Stop ends the view. What was seen last stays.
func (c *Children) Stop() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.stop()
	rest := slices.DeleteFunc(c.s.watched[c.dir], func(o *Children) bool { return o == c })
	if len(rest) == 0 {
		delete(c.s.watched, c.dir)
		return
	}
	c.s.watched[c.dir] = rest
}

// notify passes on that a watch on a path has ended, because of a change or with the session.
func (s *Session) notify(p string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.watched[p] {
		c.invalidate(true)
	}
	for _, c := range s.watched[path.Dir(p)] {
		if c.data {
			c.invalidate(false, path.Base(p))
		}
	}
}

// invalidate notes what has to be read again.
func (c *Children) invalidate(relist bool, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.relist = c.relist || relist
	for _, name := range names {
		c.stale[name] = true
	}
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// follow keeps the view up to date until it is stopped.
func (c *Children) follow() {
	check := time.NewTicker(jitter(c.s.tuning.audit))
	defer check.Stop()
	failures := 0
	for {
		conn := c.s.await(c.ctx)
		if conn == nil {
			return
		}
		if err := c.refresh(conn); err != nil {
			failures++
			c.complain(err)
			if sleep.For(c.ctx, backoff(failures)) != nil {
				return
			}
			continue
		}
		failures = 0
		select {
		case <-c.kick:
			if sleep.For(c.ctx, damping(c.size)) != nil {
				return
			}
		case <-c.show():
		case <-check.C:
			c.check(conn)
		case <-c.ctx.Done():
			return
		}
	}
}

// damping is how long to wait from a change of a directory until it is listed again, by the size of its last listing
// in bytes. Changes that follow cost nothing: the watch is set again with the listing. So a directory is listed at most
// once in this time, and one that is large and changes all the time is read at half of readBudget to all of it. Nodes
// that learn of a change at the same moment do not all list at the same moment.
func damping(size int) time.Duration {
	interval := max(minInterval, time.Duration(size)*time.Second/readBudget)
	return interval + rand.N(interval)
}

// refresh reads what is not known any more.
func (c *Children) refresh(conn *zk.Conn) error {
	c.mu.Lock()
	relist, stale := c.relist, c.stale
	c.relist, c.stale = false, make(map[string]bool)
	c.mu.Unlock()
	if relist {
		added, err := c.list(conn)
		if err != nil {
			c.invalidate(true, slices.Collect(maps.Keys(stale))...)
			return err
		}
		for _, name := range added {
			stale[name] = true
		}
	}
	if !c.data {
		return nil
	}
	return c.read(conn, stale)
}

// list reads the names of the children and returns the new ones. There is a watch on the directory afterwards.
func (c *Children) list(conn *zk.Conn) (added []string, err error) {
	if err := c.s.budget.WaitN(c.ctx, min(c.size, readBurst)); err != nil {
		return nil, err
	}
	names, pzxid, err := c.childrenOrNone(conn)
	if err != nil {
		return nil, err
	}
	members := make(map[string][]byte, len(names))
	size := 0
	for _, name := range names {
		data, known := c.members[name]
		if !known {
			added = append(added, name)
		}
		members[name] = data
		size += 4 + len(name)
	}
	c.warn(size, len(names))
	c.members, c.size, c.pzxid = members, size, pzxid
	return added, nil
}

// childrenOrNone lists the directory, or watches for it.
func (c *Children) childrenOrNone(conn *zk.Conn) (names []string, pzxid int64, err error) {
	for range maxRaces {
		names, stat, _, err := conn.ChildrenW(c.dir)
		if err == nil {
			return names, stat.Pzxid, nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return nil, 0, err
		}
		exists, _, _, err := conn.ExistsW(c.dir)
		if err != nil || !exists {
			return nil, 0, err
		}
	}
	return nil, 0, zk.ErrNoNode
}

// read reads the data of children, and watches it. The error is one of the connection; data that cannot be had for
// other reasons is nil.
func (c *Children) read(conn *zk.Conn, stale map[string]bool) error {
	var group errgroup.Group
	group.SetLimit(inFlight)
	var mu sync.Mutex // of members
	for name := range stale {
		mu.Lock()
		_, member := c.members[name]
		mu.Unlock()
		if !member {
			continue
		}
		group.Go(func() error {
			data, _, _, err := conn.GetW(c.dir + "/" + name)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, zk.ErrNoNode): // the listing that says so will come
				delete(c.members, name)
			case isConnectionError(err):
				c.invalidate(false, name)
				return err
			default:
				if err == nil && len(data) > MaxData {
					err = fmt.Errorf("%d bytes of data", len(data))
				}
				if err != nil {
					c.ignore(name, err)
					data = nil
				}
				c.members[name] = data
			}
			return nil
		})
	}
	return group.Wait()
}

// check finds out whether a change has escaped us: a watch is the library's and the servers' word, and on this one
// everything depends. A change of a child's data is one of the directory, see steps.
func (c *Children) check(conn *zk.Conn) {
	exists, stat, err := conn.Exists(c.dir)
	if err != nil {
		return // the next check will do
	}
	pzxid := int64(0)
	if exists {
		pzxid = stat.Pzxid
	}
	c.mu.Lock()
	told := c.relist
	c.mu.Unlock()
	if pzxid == c.pzxid || told { // if there is an event, it comes before the answer
		return
	}
	c.s.say("missed", slog.LevelWarn, "zookeeper: a directory has changed without our being told; it is listed again", "dir", c.dir)
	c.invalidate(true, slices.Collect(maps.Keys(c.members))...)
}

// show replaces the view if it is another one.
//
// For a while after a session was lost, nothing is taken for gone: whatever ended our session is likely to have ended
// those of others too, and they publish again what they have, as we do. Then show returns a channel that says when to
// call it again.
func (c *Children) show() (again <-chan time.Time) {
	last := c.Entries()
	next := make([]Entry, 0, len(c.members))
	for name, data := range c.members {
		next = append(next, Entry{name, data})
	}
	if left := c.s.unsettled(); left > 0 {
		for _, e := range last {
			if _, member := c.members[e.Name]; !member {
				next = append(next, e)
				again = time.After(left)
			}
		}
	}
	slices.SortFunc(next, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	if !slices.EqualFunc(last, next, func(a, b Entry) bool { return a.Name == b.Name && bytes.Equal(a.Data, b.Data) }) {
		c.entries.Store(&next)
		select {
		case c.changes <- struct{}{}:
		default:
		}
	}
	select {
	case <-c.seen:
	default:
		close(c.seen)
	}
	return again
}

// unsettled returns for how long what others published in sessions that are lost may yet come back.
func (s *Session) unsettled() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions < 2 {
		return 0
	}
	return time.Until(s.began.Add(s.tuning.settle))
}

// ignore logs why a child is of no use, once for each.
func (c *Children) ignore(name string, err error) {
	c.mu.Lock()
	known := c.ignored[name] || len(c.ignored) >= maxIgnored
	if !known {
		c.ignored[name] = true
	}
	c.mu.Unlock()
	if !known {
		c.s.say("ignored "+c.dir, slog.LevelWarn, "zookeeper: a znode is ignored", "dir", c.dir, "error", err)
	}
}

func (c *Children) warn(size, n int) {
	if size >= warnListing {
		c.s.say("large "+c.dir, slog.LevelWarn, "zookeeper: a directory is large: from 1 MiB on, ZooKeeper's own clients and tools refuse to list it "+
			"unless their jute.maxbuffer is raised, and each change costs every node that much; have fewer partitions in a version, or a lower replication",
			"dir", c.dir, "bytes", size, "children", n)
	}
}

func (c *Children) complain(err error) {
	c.s.failed("listing "+c.dir, err)
	if !isConnectionError(err) && c.ctx.Err() == nil {
		c.s.say("listing "+c.dir, slog.LevelError, "zookeeper: a directory cannot be listed; it is tried again", "dir", c.dir, "error", err)
	}
}
