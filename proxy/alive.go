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
	tls  bool
	look func(fd uintptr)
	poll [1]unix.PollFd
	n    int
	err  error
}

func (s *socket) init(nc net.Conn) {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // of TLS
		nc, s.tls = t.NetConn(), true
	}
	if c, ok := nc.(syscall.Conn); ok {
		s.raw, _ = c.SyscallConn() // an error comes again with the first use
	}
	s.look = func(fd uintptr) {
		s.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
		s.n, s.err = unix.Poll(s.poll[:], 0)
	}
}

// silent says that nothing has come on the connection that has not been read,
// not even its end.
func (s *socket) silent() bool {
	if s.raw == nil {
		return true
	}
	if err := s.raw.Control(s.look); err != nil {
		return false
	}
	return s.n == 0 && s.err == nil
}
