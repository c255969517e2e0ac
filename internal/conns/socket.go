//go:build !race

package conns

import (
	"net"
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
	s.in = transfer{calls: &s.calls, number: syscall.SYS_READ, try: s.in.attempt}
	s.out = transfer{calls: &s.calls, number: syscall.SYS_WRITE, try: s.out.attempt}
	return s
}

// Read implements net.Conn. The end and errors are those of net, which finds them again; only a reset is an end.
func (s *socket) Read(p []byte) (int, error) {
	s.in.p, s.in.n = p, 0
	s.raw.Read(s.in.try) //nolint:errcheck // s.TCPConn has the same one
	if s.in.p = nil; s.in.n > 0 {
		return s.in.n, nil
	}
	return s.TCPConn.Read(p)
}

// Write implements net.Conn. net writes what does not fit into the buffer of the kernel, and finds errors again.
func (s *socket) Write(p []byte) (int, error) {
	s.out.p, s.out.n = p, 0
	s.raw.Write(s.out.try) //nolint:errcheck // s.TCPConn has the same one
	if s.out.p = nil; s.out.n == len(p) {
		return len(p), nil
	}
	n, err := s.TCPConn.Write(p[s.out.n:])
	return s.out.n + n, err
}

// transfer is a system call of a socket, with the number of bytes that it has transferred.
type transfer struct {
	calls  *atomic.Uint64
	number uintptr
	try    func(fd uintptr) bool // attempt, to avoid an allocation
	p      []byte
	n      int
}

// attempt makes the system call, and reports whether it did or failed: otherwise it must wait.
func (t *transfer) attempt(fd uintptr) bool {
	call := syscall.RawSyscall
	if t.calls.Add(1) > maxHidden {
		call = syscall.Syscall
	}
	n, _, errno := call(t.number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.p))), uintptr(len(t.p)))
	switch errno {
	case 0:
		t.n = int(n)
	case syscall.EAGAIN:
		t.calls.Store(0)
		return false
	}
	return true
}
