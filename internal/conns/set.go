// Package conns has the connections of clients, which both front ends share: their number is limited, TLS handshakes are counted,
// deadlines are set only if they move, and a shutdown does not wait for clients that send nothing.
package conns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"sequins/internal/limitlog"
)

// Set is the listeners and the open connections of a node's servers. It is safe for concurrent use.
type Set struct {
	// Max limits the open connections.
	Max int
	Log *limitlog.Logger

	loops      sync.WaitGroup // goroutines that accept or serve connections
	draining   atomic.Bool
	hurrying   atomic.Bool
	refused    atomic.Int64
	handshakes atomic.Int64

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	open      map[*Base]struct{}
}

// Serve calls admit for each connection that ln accepts until Close, and then returns nil. It returns an error if accepting fails: see
// Patient. It closes ln.
func (s *Set) Serve(ln net.Listener, admit func(net.Conn)) error {
	defer ln.Close() //nolint:errcheck // Close closes it, too
	if !s.listen(ln) {
		return nil
	}
	defer s.loops.Done()
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			admit(nc)
		case s.isClosed():
			return nil
		default:
			return fmt.Errorf("serving on %s: %w", ln.Addr(), err)
		}
	}
}

// listen registers a listener. It returns false after Close.
func (s *Set) listen(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.loops.Add(1)
	s.listeners = append(s.listeners, ln)
	return true
}

func (s *Set) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Excess returns how many connections too many there are with one more; 0 or less if that is allowed. It counts and logs the others.
func (s *Set) Excess() int {
	n := s.Count()
	if n >= s.Max {
		s.refused.Add(1)
		s.Log.Error("too many connections: clients are refused", "open", n, "max_connections", s.Max)
	}
	return n + 1 - s.Max
}

// Go adds an open connection, and runs f on a goroutine that Wait waits for.
func (s *Set) Go(c *Base, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[*Base]struct{})
	}
	s.open[c] = struct{}{}
	s.loops.Go(f)
}

func (s *Set) remove(c *Base) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// Count returns the number of open connections.
func (s *Set) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Refused returns the number of connections beyond the limit, and of failed TLS handshakes.
func (s *Set) Refused() (conns, handshakes int64) { return s.refused.Load(), s.handshakes.Load() }

// FailedHandshake counts and logs a failed handshake, except that of a client that sends nothing or closes the connection.
func (s *Set) FailedHandshake(nc net.Conn, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	s.handshakes.Add(1)
	s.Log.Error("a TLS handshake has failed", "client", nc.RemoteAddr().String(), "error", err)
}

// Hold makes Wait also wait for a call of Done. It is called on a goroutine of Go.
func (s *Set) Hold() { s.loops.Add(1) }

// Done ends Hold.
func (s *Set) Done() { s.loops.Done() }

// Close closes the listeners.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, ln := range s.listeners {
		ln.Close() //nolint:errcheck // Serve closes it again
	}
}

// Drain tells the servers to close each connection after its next answer: see Draining.
func (s *Set) Drain() { s.draining.Store(true) }

// Draining reports whether Drain was called.
func (s *Set) Draining() bool { return s.draining.Load() }

// Hurry closes the connections that wait for a request, now or later, after a short time.
func (s *Set) Hurry() {
	s.hurrying.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.hurry() //nolint:errcheck // fails where it is closed already
	}
}

// Wait waits for the end of all listeners and connections.
func (s *Set) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.loops.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CloseAll closes every connection.
func (s *Set) CloseAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.Conn.Close() //nolint:errcheck // nothing can be done about it
	}
}
