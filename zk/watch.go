package zk

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

const (
	// warnListing is the size of a listing that is warned of: half of what ZooKeeper passes on by default.
	warnListing = 512 << 10
	// minInterval is how soon a small directory may be listed again.
	minInterval = 50 * time.Millisecond
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

	mu     sync.Mutex
	relist bool            // there is no watch on the directory
	stale  map[string]bool // children whose data is not known, or not watched
	kick   chan struct{}   // capacity 1: relist or stale is another one

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
		members: make(map[string][]byte),
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
	failures := 0
	for {
		conn := c.s.await(c.ctx)
		if conn == nil {
			return
		}
		if err := c.refresh(conn); err != nil {
			failures++
			c.complain(err)
			pause(c.ctx, backoff(failures))
			continue
		}
		failures = 0
		select {
		case <-c.kick:
			pause(c.ctx, jitter(interval(c.size)))
		case <-c.ctx.Done():
			return
		}
	}
}

// interval is how long it takes, on average, from a change of a directory until it is listed again: so long that one
// large directory that changes all the time is read at readBudget.
func interval(size int) time.Duration {
	return max(minInterval, time.Duration(size)*time.Second/readBudget)
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
	if err := c.read(conn, stale); err != nil {
		return err
	}
	c.show()
	return nil
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

// read reads the data of children, and watches it.
func (c *Children) read(conn *zk.Conn, stale map[string]bool) error {
	if !c.data {
		return nil
	}
	var (
		group errgroup.Group
		mu    sync.Mutex
		first error
	)
	group.SetLimit(inFlight)
	for name := range stale {
		if _, member := c.members[name]; !member {
			continue
		}
		group.Go(func() error {
			data, _, _, err := conn.GetW(c.dir + "/" + name)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				c.members[name] = data
			case errors.Is(err, zk.ErrNoNode): // the listing that says so will come
				delete(c.members, name)
			default:
				first = err
				c.invalidate(false, name)
			}
			return nil
		})
	}
	_ = group.Wait()
	return first
}

// show replaces the view if it is another one.
func (c *Children) show() {
	next := make([]Entry, 0, len(c.members))
	for name, data := range c.members {
		next = append(next, Entry{name, data})
	}
	slices.SortFunc(next, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	same := slices.EqualFunc(*c.entries.Load(), next, func(a, b Entry) bool { return a.Name == b.Name && bytes.Equal(a.Data, b.Data) })
	if !same {
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
}

func (c *Children) warn(size, n int) {
	if size >= warnListing {
		c.s.say("listing "+c.dir, slog.LevelWarn, "zookeeper: a directory comes near the 1 MiB that ZooKeeper passes on by default: "+
			"raise jute.maxbuffer on all servers, or have fewer partitions or a lower replication", "dir", c.dir, "bytes", size, "children", n)
	}
}

func (c *Children) complain(err error) {
	c.s.failed("listing "+c.dir, err)
	if !isConnectionError(err) && c.ctx.Err() == nil {
		c.s.say("listing "+c.dir, slog.LevelError, "zookeeper: a directory cannot be listed; it is tried again", "dir", c.dir, "error", err)
	}
}
