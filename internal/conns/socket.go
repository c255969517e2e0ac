//go:build !race

package conns

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// socket is a TCP connection that one goroutine reads from, and one writes to, at a time.
//
// Its system calls never wait, so most are hidden from Go's scheduler. A call that the scheduler knows of wakes its monitor thread if
// that sleeps, which it does when no goroutine runs: with few connections, at every request, at a fifth of the request's processor time.
// But only the monitor interrupts a goroutine that never waits, so after maxHidden calls without waiting the others are known.
type socket struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer
	calls   atomic.Uint64 // since one had to wait
}

// maxHidden is more than a request has: a read for what has arrived, a write, and a read that waits.
const maxHidden = 8

// newSocket returns a socket for a TCP connection, and other connections unchanged.
func newSocket(nc net.Conn) net.Conn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	s := &socket{TCPConn: tcp}
	s.raw, _ = tcp.SyscallConn() // never fails for what was accepted
	s.in = transfer{socket: s, name: "read", number: syscall.SYS_READ, try: s.in.attempt}
	s.out = transfer{socket: s, name: "write", number: syscall.SYS_WRITE, try: s.out.attempt}
	return s
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	s.in.p = p
	n, err := s.in.end(s.raw.Read(s.in.try))
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (s *socket) Write(p []byte) (written int, err error) {
	for {
		s.out.p = p[written:]
		n, err := s.out.end(s.raw.Write(s.out.try))
		if written += n; err != nil || written == len(p) {
			return written, err
		}
	}
}

// transfer is a system call of a socket, and its result.
type transfer struct {
	socket *socket
	name   string
	number uintptr
	try    func(fd uintptr) bool // attempt, to avoid an allocation
	p      []byte
	n      int
	errno  syscall.Errno
}

// attempt makes the system call, and reports whether it did anything: otherwise it must wait.
func (t *transfer) attempt(fd uintptr) bool {
	call := syscall.RawSyscall
	if t.socket.calls.Add(1) > maxHidden {
		call = syscall.Syscall
	}
	n := uintptr(0)
	for t.errno = syscall.EINTR; t.errno == syscall.EINTR; {
		n, _, t.errno = call(t.number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.p))), uintptr(len(t.p)))
	}
	if t.errno == syscall.EAGAIN {
		t.socket.calls.Store(0)
		return false
	}
	t.n = max(int(n), 0) // -1 after an error
	return true
}

// end returns the result. err is that of the waiting, which has a deadline.
func (t *transfer) end(err error) (n int, _ error) {
	n, t.p, t.n = t.n, nil, 0
	if err == nil && t.errno == 0 {
		return n, nil
	}
	var failed *net.OpError
	if !errors.As(err, &failed) {
		failed = &net.OpError{Net: "tcp", Source: t.socket.LocalAddr(), Addr: t.socket.RemoteAddr(), Err: os.NewSyscallError(t.name, t.errno)}
	}
	failed.Op = t.name // net/http looks at it
	return n, failed
}
