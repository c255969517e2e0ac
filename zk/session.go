package zk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/time/rate"
)

// ErrClosed is what one gets of a Session that was closed.
var ErrClosed = errors.New("zk: the session is closed")

// A State is how a Session stands with the ensemble.
type State int

const (
	// Connecting: there is no session, not yet or not any more. Next: Connected, Closed.
	Connecting State = iota
	// Connected: there is a session and a connection. Next: Suspended, Connecting, Closed.
	Connected
	// Suspended: the connection is lost; whether the session is, only the ensemble knows. What was published stays
	// until the session timeout has passed there. Next: Connected, Connecting, Closed.
	Suspended
	// Closed is the end.
	Closed
)

// String returns the state's name, as status pages show it.
func (s State) String() string {
	switch s {
	case Connecting:
		return "connecting"
	case Connected:
		return "connected"
	case Suspended:
		return "suspended"
	case Closed:
		return "closed"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// Status is how a Session stands, at a glance.
type Status struct {
	State     State
	Connected bool      // State is Connected
	Since     time.Time // when State began
	Sessions  int       // how many have begun, this one included
	Published int       // paths that are as they are wanted
	Pending   int       // paths that are not
	LastError string    // the last thing that went wrong, however long ago
}

const (
	// readBudget and readBurst bound what a session reads in listings, in bytes a second and at once. A thousand nodes
	// that all follow everything ask no more of the ensemble than a thousand times this.
	readBudget = 128 << 10
	readBurst  = 2 << 20
	// dataRate and dataBurst bound how many znodes a session reads the data of, in a second and at once.
	dataRate  = 4000
	dataBurst = 16_000
)

// A Session is a connection to an ensemble that is kept up for ever, through any number of ZooKeeper's sessions. Its
// methods can be called from any goroutine.
type Session struct {
	o      Options
	log    *slog.Logger
	acl    []zk.ACL
	tuning tuning

	closing context.Context
	close   context.CancelFunc
	work    sync.WaitGroup // run, reconcile, and one follow for each Children
	budget  *rate.Limiter  // of bytes in listings
	reads   *rate.Limiter  // of znodes whose data is read
	lines   lines

	wake chan struct{} // capacity 1: reconcile has something to do

	mu        sync.Mutex
	changed   chan struct{} // closed, and another one put here, when something of what follows is different
	client    *client
	state     State
	since     time.Time
	id        int64 // of ZooKeeper's session; 0 before the first
	sessions  int
	began     time.Time // when that session did
	lastError string
	missed    bool // that there is no connection is the last that was logged, or nothing was
	desired   map[string]*znode
	dirty     map[string]*znode // those of desired that may not be as they should
	prunes    map[string]int    // directories to remove when they are empty, and how many attempts are left
	pruneDue  bool
	watched   map[string][]*Children // by absolute path
}

// tuning are the times that tests make shorter.
type tuning struct {
	abandon time.Duration // see refused
	audit   time.Duration // how often what is published is looked at, and watches are checked
	settle  time.Duration // how long after a new session nothing that was seen before is taken for gone
}

// Connect returns a Session that connects in the background, for ever. It does not wait for a server: errors are those
// of the options.
func Connect(o Options) (*Session, error) { return connect(o, tuning{}) }

func connect(o Options, t tuning) (*Session, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Session{
		o: o, log: o.Logger, acl: o.acl(), tuning: t.withDefaults(o),
		budget: rate.NewLimiter(readBudget, readBurst), reads: rate.NewLimiter(dataRate, dataBurst),
		wake: make(chan struct{}, 1), changed: make(chan struct{}), since: time.Now(), missed: true,
		desired: make(map[string]*znode), dirty: make(map[string]*znode),
		prunes: make(map[string]int), watched: make(map[string][]*Children),
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.work.Go(s.run)
	s.work.Go(s.reconcile)
	return s, nil
}

func (t tuning) withDefaults(o Options) tuning {
	if t.abandon == 0 {
		t.abandon = max(time.Minute, 3*o.SessionTimeout)
	}
	if t.audit == 0 {
		t.audit = time.Minute
	}
	if t.settle == 0 {
		t.settle = o.SessionTimeout
	}
	return t
}

// Close ends the session, and with it everything that was published is gone. That takes a few seconds at most: if no
// server can be reached, the ensemble forgets us after the session timeout. Views stay as they are.
func (s *Session) Close() error {
	s.mu.Lock()
	s.close() // nothing is begun after that: see Watch
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// Timeout returns after how long without a sign of life the servers end a session, and delete what it has published.
func (s *Session) Timeout() time.Duration { return s.o.SessionTimeout }

// Status returns how the session stands.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		State: s.state, Connected: s.state == Connected, Since: s.since, Sessions: s.sessions,
		Pending: len(s.dirty), LastError: s.lastError,
	}
	for path, z := range s.desired {
		if z.wanted && s.dirty[path] == nil {
			st.Published++
		}
	}
	return st
}

// run keeps a client until the Session is closed. One is enough, except after an ensemble was restored to an earlier
// state: see refused.
func (s *Session) run() {
	for s.closing.Err() == nil {
		c := s.dial()
		stop := context.AfterFunc(s.closing, c.conn.Close) // nobody waits for an answer any more
		s.attend(c)
		stop()
		c.hangUp()
	}
	s.turn(Closed, 0, nil)
}

// attend follows what becomes of a client's connection, until the Session is closed or the client is of no use.
func (s *Session) attend(c *client) {
	for {
		select {
		case <-s.closing.Done():
			return
		case <-c.events:
		}
		switch id := c.conn.SessionID(); {
		case c.conn.State() == zk.StateHasSession:
			if err := c.authenticate(s.o.Auth); err != nil {
				s.failed("authenticate", err)
				continue // the connection is gone, and there will be an event
			}
			s.turn(Connected, id, c)
		case id == 0:
			s.turn(Connecting, id, nil)
		default:
			s.turn(Suspended, id, nil)
		}
		if s.refused(c) {
			s.say("refused", slog.LevelWarn, "zookeeper: no server takes our session up again: a new one is begun; the ensemble may have lost data")
			return
		}
	}
}

// refused reports whether servers accept connections and then hang up, and have done so for so long that the session
// is lost anyway. An ensemble that was restored to an earlier state does so for ever: servers turn away a client that
// has seen more than they know. To a new client they look like any others.
func (s *Session) refused(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == Suspended && c.accepted.Load() > 0 && time.Since(s.since) > s.tuning.abandon
}

// turn notes the state that the session is in, and says so if it is another one.
func (s *Session) turn(to State, id int64, c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to == s.state && (to != Connected || id == s.id) {
		return
	}
	s.state, s.since, s.client = to, time.Now(), c
	if to == Connected && id != s.id {
		s.begin(id)
	}
	s.broadcast()
	s.logTurn()
}

// begin notes a new session of ZooKeeper's. Nothing that the last one published will stay.
func (s *Session) begin(id int64) {
	s.id, s.began = id, time.Now()
	s.sessions++
	for _, z := range s.desired {
		z.fresh = z.wanted
		s.soil(z)
	}
}

// logTurn logs what was lost, but not each time if that goes on, and that it is back, if it was logged as lost.
func (s *Session) logTurn() {
	switch s.state {
	case Connected:
		if s.missed {
			s.log.Info("zookeeper: connected", "session", fmt.Sprintf("%#x", s.id), "server", s.client.conn.Server())
		}
		s.missed = false
	case Suspended:
		s.missed = s.say("lost", slog.LevelWarn, "zookeeper: connection lost; going on with what was last seen", "error", s.lastError) || s.missed
	case Connecting:
		s.missed = s.say("expired", slog.LevelWarn, "zookeeper: session lost; going on with what was last seen") || s.missed
	}
}

// broadcast wakes everybody who waits for something in s to change. s.mu is held.
func (s *Session) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await returns a connection that has a session, or nil when ctx ends.
func (s *Session) await(ctx context.Context) *zk.Conn {
	for ctx.Err() == nil {
		s.mu.Lock()
		c, changed := s.client, s.changed
		s.mu.Unlock()
		if c != nil {
			return c.conn
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// failed notes an error for the status. That there is no connection is not worth it: why is better known.
func (s *Session) failed(what string, err error) {
	if isConnectionError(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastError = what + ": " + err.Error()
}

// isConnectionError reports whether an operation failed for want of a connection or a session: it may have been done
// or not.
func isConnectionError(err error) bool {
	var network net.Error // the library passes on what it gets when it writes
	return errors.As(err, &network) || slices.ContainsFunc(connectionErrors, func(e error) bool { return errors.Is(err, e) })
}

var connectionErrors = []error{
	zk.ErrConnectionClosed, zk.ErrSessionExpired, zk.ErrNoServer, zk.ErrClosing, zk.ErrSessionMoved, net.ErrClosed, io.EOF,
}
