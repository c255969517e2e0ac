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

	mu        sync.Mutex
	relist    bool            // there is no watch on the directory
	kick      chan struct{}   // capacity 1: relist has been set
	ignored   map[string]bool // see ignore
	announced int             // counts the changes that are known of; see Current
	shown     int             // the value of announced that entries are as new as; -1 before the first listing

	// What follows belongs to the goroutine that follows the directory.
	members map[string][]byte // the children, as of the last listing
	unread  map[string]bool   // children whose data has to be read
	size    int               // of the last listing, in bytes
	stat    zk.Stat           // of the directory, as of the last listing; zero if there is none
}

// Watch returns a view of a directory, and of the data of its children if that is asked for. It returns at once. A
// directory that does not exist is empty until it does.
//
// A view costs the servers one watch, with data or without. Data is read once for each child, and for all of them again
// when a child that was known has been created anew, which is how Publish replaces data. Data that others set in place
// is not noticed.
func (s *Session) Watch(dir string, data bool) *Children {
	c := &Children{
		s: s, dir: s.absolute(dir), data: data,
		seen: make(chan struct{}), changes: make(chan struct{}, 1),
		relist: true, kick: make(chan struct{}, 1), shown: -1,
		members: make(map[string][]byte), unread: make(map[string]bool), ignored: make(map[string]bool),
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

// Current reports whether the directory has been listed, and no change of it is known that Entries do not show yet.
func (c *Children) Current() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown == c.announced
}

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
		c.invalidate()
	}
}

// invalidate has the directory listed again.
func (c *Children) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.relist = true
	c.announced++
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
		upTo, err := c.refresh(conn)
		if err != nil {
			failures++
			c.complain(err)
			if sleep.For(c.ctx, backoff(failures)) != nil {
				return
			}
			continue
		}
		failures = 0
		again := c.show(upTo)
		select {
		case <-c.kick:
			if sleep.For(c.ctx, damping(c.size)) != nil {
				return
			}
		case <-again:
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

// refresh reads what is not known any more. It returns the value of announced that the result is as new as.
func (c *Children) refresh(conn *zk.Conn) (upTo int, err error) {
	c.mu.Lock()
	relist, upTo := c.relist, c.announced
	c.relist = false
	c.mu.Unlock()
	if relist {
		if err := c.list(conn); err != nil {
			c.mu.Lock()
			c.relist = true
			c.mu.Unlock()
			return 0, err
		}
	}
	return upTo, c.read(conn)
}

// list reads the names of the children, and notes those whose data has to be read. There is a watch on the directory
// afterwards.
func (c *Children) list(conn *zk.Conn) error {
	if err := c.s.budget.WaitN(c.ctx, min(c.size, readBurst)); err != nil {
		return err
	}
	names, stat, err := c.childrenOrNone(conn)
	if err != nil {
		return err
	}
	members := make(map[string][]byte, len(names))
	size, added := 0, 0
	for _, name := range names {
		data, known := c.members[name]
		if !known {
			added++
			c.unread[name] = true
		}
		members[name] = data
		size += 4 + len(name)
	}
	if stat.Czxid != c.stat.Czxid || created(c.stat, stat) != added {
		for _, name := range names {
			c.unread[name] = true
		}
	}
	c.warn(size, len(names))
	c.members, c.size, c.stat = members, size, stat
	return nil
}

// created returns how many children were created in a directory between two looks at it. The servers count in cversion
// each child that is created or deleted. Where there are more than new names, a known one was created anew.
func created(before, now zk.Stat) int {
	changes, growth := now.Cversion-before.Cversion, now.NumChildren-before.NumChildren
	return int(changes+growth) / 2
}

// childrenOrNone lists the directory, or watches for it.
func (c *Children) childrenOrNone(conn *zk.Conn) (names []string, stat zk.Stat, err error) {
	for range maxRaces {
		names, stat, _, err := conn.ChildrenW(c.dir)
		if err == nil {
			return names, *stat, nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return nil, zk.Stat{}, err
		}
		exists, _, _, err := conn.ExistsW(c.dir)
		if err != nil || !exists {
			return nil, zk.Stat{}, err
		}
	}
	return nil, zk.Stat{}, zk.ErrNoNode
}

// read reads the data of children, if it was asked for. The error is one of the connection; data that cannot be had for
// other reasons is nil.
func (c *Children) read(conn *zk.Conn) error {
	if !c.data {
		clear(c.unread)
		return nil
	}
	var group errgroup.Group
	group.SetLimit(inFlight)
	var mu sync.Mutex // of members and unread
	for _, name := range slices.Collect(maps.Keys(c.unread)) {
		if err := c.s.reads.Wait(c.ctx); err != nil {
			return errors.Join(err, group.Wait())
		}
		group.Go(func() error {
			data, _, err := conn.Get(c.dir + "/" + name)
			if isConnectionError(err) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			c.take(name, data, err)
			return nil
		})
	}
	return group.Wait()
}

// take notes the data of a child, or why there is none.
func (c *Children) take(name string, data []byte, err error) {
	delete(c.unread, name)
	if _, member := c.members[name]; !member {
		return
	}
	if errors.Is(err, zk.ErrNoNode) { // the listing without it will come
		delete(c.members, name)
		return
	}
	if err == nil && len(data) > MaxData {
		err = fmt.Errorf("%d bytes of data", len(data))
	}
	if err != nil {
		c.ignore(name, err)
		data = nil
	}
	c.members[name] = data
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
	if pzxid == c.stat.Pzxid || told { // if there is an event, it comes before the answer
		return
	}
	c.s.say("missed", slog.LevelWarn, "zookeeper: a directory has changed without our being told; it is listed again", "dir", c.dir)
	c.invalidate()
}

// show replaces the view if it is another one.
//
// For a while after a session was lost, nothing is taken for gone: whatever ended our session is likely to have ended
// those of others too, and they publish again what they have, as we do. Then show returns a channel that says when to
// call it again.
func (c *Children) show(upTo int) (again <-chan time.Time) {
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
	c.mu.Lock()
	c.shown = upTo
	c.mu.Unlock()
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
