package zk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"golang.org/x/time/rate"

	"sequins/zk/internal/wire"
)

// endPatience is how long Close waits for a connection, and then for the servers to end the session.
const endPatience = 2 * time.Second

// run maintains a connection until the Session is closed. It connects to the servers in turn, to each of them once a second
// in the long run, whatever they answer.
func (s *Session) run() {
	servers := s.o.servers()
	rand.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
	dials := rate.NewLimiter(rate.Limit(len(servers)), len(servers)+1)
	session := wire.Session{Timeout: s.o.SessionTimeout}
	for i := 0; dials.Wait(s.closing) == nil; i++ {
		server := servers[i%len(servers)]
		conn, err := s.dial(server)
		if err != nil {
			s.recordError("connection", fmt.Errorf("failed to connect to %s: %w", server, err))
			continue
		}
		if err = s.serve(conn, server, &session); err == nil {
			session = wire.Session{}
			break
		}
		s.recordError("connection", fmt.Errorf("%s: %w", server, err))
		if s.rejected() {
			s.logLimited("refused", slog.LevelWarn, "zookeeper: servers reject the session; starting a new one; the ensemble may have lost data")
			err = wire.SessionExpired
		}
		if errors.Is(err, wire.SessionExpired) {
			session = wire.Session{Timeout: s.o.SessionTimeout}
			s.setState(Connecting)
		}
	}
	if session.ID != 0 {
		s.o.Logger.Warn("zookeeper: cannot end the session; other nodes see what it has published until it expires")
	}
	s.setState(Closed)
}

// dial connects to a server by name.
func (s *Session) dial(server string) (net.Conn, error) {
	dial := (&net.Dialer{}).DialContext
	if s.o.TLS != nil {
		dial = (&tls.Dialer{Config: s.o.TLS}).DialContext
	}
	timeout, cancel := context.WithTimeout(s.closing, s.o.ConnectTimeout)
	defer cancel()
	conn, err := dial(timeout, "tcp", server)
	if errors.Is(timeout.Err(), context.DeadlineExceeded) && err != nil {
		err = fmt.Errorf("no answer within %s: %w", s.o.ConnectTimeout, err)
	}
	return conn, err
}

// serve begins or resumes the session on a connection, and uses it until it ends. The error is why the connection has ended; nil if
// Close has ended the session.
func (s *Session) serve(nc net.Conn, server string, session *wire.Session) error {
	stop := context.AfterFunc(s.closing, func() { _ = nc.Close() }) // the error is that of the handshake
	wait := max(s.o.ConnectTimeout, s.o.SessionTimeout/3)
	conn, err := wire.Connect(nc, session, wait, s.notify)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no answer within %s: %w", wait, err)
	}
	if err != nil {
		stop()
		return fmt.Errorf("handshake: %w", err)
	}
	defer conn.Close()
	if s.o.Auth != "" {
		err = conn.Authenticate(s.o.Auth)
	}
	stop()
	switch {
	case errors.Is(err, wire.ErrLost):
		return fmt.Errorf("authenticate: %w", conn.Err())
	case err != nil:
		return fmt.Errorf("authenticate: %w", err)
	}
	s.setConnected(conn, server)
	select {
	case <-conn.Ended():
		session.Zxid = conn.Zxid()
		s.setState(Suspended)
	case <-s.closing.Done():
		return conn.EndSession(endPatience)
	}
	return conn.Err()
}

// rejected reports whether a server has closed the connection after the session was without one for so long that it is
// lost anyway. An ensemble that was restored to an earlier state rejects every client that has seen a later one, forever. A
// new session is accepted.
func (s *Session) rejected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == Suspended && time.Since(s.since) > s.abandon
}
