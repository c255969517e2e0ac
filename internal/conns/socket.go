package conns

import (
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
// that sleeps, which it does when no goroutine runs: with few connections, at every request, at a third of the request's processor time.
// But only the monitor interrupts a goroutine that never waits, so after maxHidden calls without waiting the others are known.
type socket struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer
	hidden  atomic.Int32 // calls since one had to wait, up to maxHidden
}

// maxHidden is more than a request has: a read for what has arrived, a write, and a read that waits.
const maxHidden = 8

// newSocket returns a socket for a TCP connection, and other connections unchanged.
func newSocket(nc net.Conn) net.Conn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	raw, err := tcp.SyscallConn()
	if err != nil { // never for what was accepted
		return nc
	}
	s := &socket{TCPConn: tcp, raw: raw}
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
	hidden := &t.socket.hidden
	for {
		var n uintptr
		if hidden.Load() < maxHidden {
			hidden.Add(1)
			n, _, t.errno = syscall.RawSyscall(t.number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.p))), uintptr(len(t.p)))
		} else {
			n, _, t.errno = syscall.Syscall(t.number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.p))), uintptr(len(t.p)))
		}
		switch t.errno {
		case 0:
			t.n = int(n)
			return true
		case syscall.EAGAIN:
			hidden.Store(0)
			return false
		case syscall.EINTR:
		default:
			return true
		}
	}
}

// end returns the result. err is that of the waiting, which has a deadline.
func (t *transfer) end(err error) (n int, _ error) {
	if s := t.socket; err == nil && t.errno != 0 {
		err = &net.OpError{Op: t.name, Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: os.NewSyscallError(t.name, t.errno)}
	}
	n, t.p, t.n = t.n, nil, 0
	return n, err
}
