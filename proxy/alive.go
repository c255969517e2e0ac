package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket checks whether a connection has unread input. It is part of each conn, so that a check
// allocates nothing.
type socket struct {
	raw  syscall.RawConn // nil if the connection has no socket
	tls  bool
	look func(fd uintptr)
	poll [1]unix.PollFd
	n    int
	err  error
}

func (s *socket) init(nc net.Conn) {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // a TLS connection
		nc, s.tls = t.NetConn(), true
	}
	if c, ok := nc.(syscall.Conn); ok {
		s.raw, _ = c.SyscallConn() // a later use returns the error again
	}
	s.look = func(fd uintptr) {
		s.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		for s.err = unix.EINTR; s.err == unix.EINTR; { // by a signal, also of the runtime's scheduler
			s.n, s.err = unix.Poll(s.poll[:], 0)
		}
	}
}

// silent reports whether the connection has no unread input; an end of file counts as input.
func (s *socket) silent() bool {
	if s.raw == nil {
		return true
	}
	if err := s.raw.Control(s.look); err != nil {
		return false
	}
	return s.n == 0 && s.err == nil
}
