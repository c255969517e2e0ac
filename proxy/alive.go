package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket looks whether anything has come on a connection. There is
// one for each connection, so that looking allocates nothing.
type socket struct {
	raw  syscall.RawConn // nil where there is no socket
	look func(fd uintptr)
	poll [1]unix.PollFd
	n    int
	err  error
}

func (s *socket) init(nc net.Conn) {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // of TLS
		nc = t.NetConn()
	}
	if c, ok := nc.(syscall.Conn); ok {
		s.raw, _ = c.SyscallConn() // an error comes again with the first use
	}
	s.look = func(fd uintptr) {
		s.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		s.n, s.err = unix.Poll(s.poll[:], 0)
	}
}

// silent says of an idle connection that nothing has come on it, not even its
// end. What does was not asked for, and would be taken for the next answer.
func (s *socket) silent() bool {
	if s.raw == nil {
		return true
	}
	if err := s.raw.Control(s.look); err != nil {
		return false
	}
	return s.n == 0 && s.err == nil
}
