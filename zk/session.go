package zk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sequins/zk/internal/wire"
)

// ErrClosed is returned by methods of a closed Session.
var ErrClosed = errors.New("zk: the session is closed")

// State is the state of a Session.
type State int

const (
	// Connecting: there is no session. Next: Connected, Closed.
	Connecting State = iota
	// Connected: there is a session and a connection. Next: Suspended, Connecting, Closed.
	Connected
	// Suspended: the connection is lost, and the session may be. What was published stays until the session timeout has
	// passed on the servers. Next: Connected, Connecting, Closed.
	Suspended
	// Closed: Close was called. Final.
	Closed
)

// Status is a snapshot of a Session.
type Status struct {
	State     State
	Since     time.Time // when State began
	Sessions  int       // number of sessions so far, including this one
	Published int       // paths that are in their desired state
	Pending   int       // paths that are not
	LastError string    // the last error, however old
}

const (
	// readBudget and readBurst bound the bytes of listings that a session reads, per second and at once. They bound the
	// load of a cluster on the ensemble: 1,000 nodes that watch everything read at most 1,000 times this.
	readBudget = 128 << 10
	readBurst  = 2 << 20
	// dataRate and dataBurst bound the znodes whose data a session reads, per second and at once.
	dataRate  = 4000
	dataBurst = 16_000
)

// Session maintains a connection to an ensemble across any number of ZooKeeper sessions. Its methods may be called
// concurrently.
type Session struct {
	o   Options
	acl wire.ACL

	abandon time.Duration // see rejected
	audit   time.Duration // interval between checks of published znodes
	settle  time.Duration // how long after a new session vanished children are still shown

	closing context.Context
	close   context.CancelFunc
	work    sync.WaitGroup // run, reconcile, and one follow for each Children
	budget  *rate.Limiter  // in bytes of listings
	reads   *rate.Limiter  // in znodes whose data is read
	limits  sync.Map       // of lines of the log, by kind, see logLimited

	mu         sync.Mutex
	changed    chan struct{} // closed and replaced when one of the fields below changes
	conn       *wire.Conn    // nil without a connection
	state      State
	since      time.Time
	id         int64 // of ZooKeeper's session; 0 before the first
	sessions   int
	began      time.Time // start of that session
	lastError  string
	lost       time.Time // since when there is no connection; zero if there is one, or there was none yet
	lossLogged bool      // the last line logged was a lost connection, or nothing was logged yet
	desired    map[string]*znode
	prunes     map[string]bool      // see Prune
	watched    map[string]*Children // by absolute path
}

// Connect returns a Session that connects in the background and reconnects until it is closed. It does not wait for a
// server.
func Connect(o Options) *Session {
	s := newSession(o)
	s.start()
	return s
}

func newSession(o Options) *Session {
	s := &Session{
		o: o, acl: o.acl(), abandon: max(10*time.Second, 2*o.SessionTimeout), audit: time.Minute, settle: o.SessionTimeout,
		budget: rate.NewLimiter(readBudget, readBurst), reads: rate.NewLimiter(dataRate, dataBurst),
		changed: make(chan struct{}), since: time.Now(), lossLogged: true,
		desired: make(map[string]*znode), prunes: make(map[string]bool), watched: make(map[string]*Children),
	}
	s.closing, s.close = context.WithCancel(context.Background())
	return s
}

func (s *Session) start() {
	s.work.Go(s.run)
	s.work.Go(s.reconcile)
}

// Close ends the session, which deletes everything published. It takes a few seconds at most: if no server can be
// reached, the ensemble expires the session after its timeout. Views keep their last entries. Nothing is published after it.
func (s *Session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	_ = s.until(ctx, func() bool { return s.state == Connected || s.sessions == 0 }) // who has lost the connection cannot end the session
	s.mu.Lock()
	s.close() // nothing starts after that: see Watch
	clear(s.desired)
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// Timeout returns the session timeout: how long after the last heartbeat the servers end a session and delete what it
// published.
func (s *Session) Timeout() time.Duration { return s.o.SessionTimeout }

// Status returns a snapshot of the session.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		State: s.state, Since: s.since, Sessions: s.sessions, LastError: s.lastError,
	}
	for _, z := range s.desired {
		if z.state == due {
			st.Pending++
		} else {
			st.Published++
		}
	}
	return st
}

// setState records the session's state, and logs it if it has changed.
func (s *Session) setState(to State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to == s.state {
		return
	}
	s.state, s.since, s.conn = to, time.Now(), nil
	s.broadcast()
	s.logState("")
}

// setConnected records a connection. It has no watches, so all views list their directories again. If it has begun a ZooKeeper session, the
// znodes of the previous one will be deleted, and all are written again.
func (s *Session) setConnected(conn *wire.Conn, server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.since, s.conn = Connected, time.Now(), conn
	if conn.SessionID() != s.id {
		s.id, s.began = conn.SessionID(), s.since
		s.sessions++
		for _, z := range s.desired {
			z.state, z.retry = due, time.Time{}
		}
	}
	for _, c := range s.watched {
		c.invalidate()
	}
	s.broadcast()
	s.logState(server)
}

// logState logs a lost connection or session at a limited rate, and a new connection if the loss was logged.
func (s *Session) logState(server string) {
	switch s.state {
	case Connected:
		if s.lossLogged {
			args := []any{"session", fmt.Sprintf("%#x", s.id), "server", server}
			if !s.lost.IsZero() {
				args = append(args, "after", time.Since(s.lost).Round(time.Millisecond))
			}
			s.o.Logger.Info("zookeeper: connected", args...)
		}
		s.lossLogged, s.lost = false, time.Time{}
	case Suspended:
		s.lost = s.since
		s.lossLogged = s.logLimited("lost", slog.LevelWarn, "zookeeper: connection lost; using the last known state") || s.lossLogged
	case Connecting:
		s.lossLogged = s.logLimited("expired", slog.LevelWarn, "zookeeper: session lost; using the last known state") || s.lossLogged
	}
}

// broadcast wakes all goroutines that wait for a change of s. s.mu is held.
func (s *Session) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// until waits until done, which is called with s.mu held, returns true. The error is ErrClosed or that of ctx.
func (s *Session) until(ctx context.Context, done func() bool) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		isDone, state, changed := done(), s.state, s.changed
		s.mu.Unlock()
		switch {
		case state == Closed:
			return ErrClosed
		case isDone:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// await returns a connection that has a session, or nil when ctx ends.
func (s *Session) await(ctx context.Context) (conn *wire.Conn) {
	err := s.until(ctx, func() bool {
		conn = s.conn
		return conn != nil && conn.Err() == nil
	})
	if err != nil {
		return nil
	}
	return conn
}

// recordError records an error for the status, unless it only reports a missing connection, whose cause is recorded
// elsewhere.
func (s *Session) recordError(what string, err error) {
	if errors.Is(err, wire.ErrLost) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastError = what + ": " + err.Error()
}
