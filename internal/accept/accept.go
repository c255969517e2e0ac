// Package accept accepts connections, also while the process has no file descriptor left for them.
//
// Without a descriptor, accept fails, and the kernel keeps connections in the queue of the listener: their clients are
// connected, and wait for an answer until they give up. A Listener holds one descriptor in reserve. It closes the reserve to
// accept such a connection, refuses it, and takes the reserve back.
package accept

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sequins/internal/limitlog"
)

// A Record counts the connections that were refused for want of a file descriptor. The listeners of a process share one. The
// zero value is ready to use.
type Record struct {
	mu      sync.Mutex // held while a listener uses its reserve, so that no other listener takes that descriptor
	refused atomic.Int64
	last    atomic.Int64 // in Unix nanoseconds; 0 if there is none
}

// Refused returns the number of refused connections.
func (r *Record) Refused() int64 { return r.refused.Load() }

// Last returns the time of the last attempt to accept that failed for want of a descriptor; zero if there is none.
func (r *Record) Last() time.Time {
	if n := r.last.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// Listener is a net.Listener whose Accept fails only permanently.
type Listener struct {
	net.Listener
	tcp     *net.TCPListener // Listener, or nil if it is not one
	refuse  func(net.Conn)
	record  *Record
	limited *limitlog.Logger
	reserve *os.File // nil while it cannot be opened
}

// New returns a listener that accepts the connections of ln, which must be a *net.TCPListener if connections are to be refused.
// refuse sends an answer on those that cannot be kept, in a few bytes, before Accept closes them; it may be nil. Accept must
// not be called concurrently.
func New(ln net.Listener, record *Record, logger *slog.Logger, refuse func(net.Conn)) *Listener {
	l := &Listener{Listener: ln, refuse: refuse, record: record, limited: limitlog.New(logger)}
	l.tcp, _ = ln.(*net.TCPListener)
	l.restore()
	return l
}

// The pauses of Accept after an error. maxExhausted is the longest one of a process without descriptors: so long does a
// connection wait for its refusal.
const (
	minDelay     = 5 * time.Millisecond
	maxDelay     = time.Second
	maxExhausted = 50 * time.Millisecond
)

// Accept returns the next connection that can be kept. It retries temporary errors.
func (l *Listener) Accept() (net.Conn, error) {
	for delay := minDelay; ; delay *= 2 {
		nc, err := l.Listener.Accept()
		if err == nil {
			return nc, nil
		}
		longest := maxDelay
		switch {
		case !isPassing(err):
			l.drop()
			return nil, err
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			if nc := l.useReserve(err); nc != nil {
				return nc, nil
			}
			longest = maxExhausted
		default:
			l.limited.Error("accepting a connection", "error", err)
		}
		delay = min(delay, longest)
		time.Sleep(delay)
	}
}

// isPassing reports whether an error of accept is temporary.
func isPassing(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary() || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// useReserve accepts connections with the reserved descriptor while some are waiting, and refuses them. If there are
// descriptors again, it returns the connection. The reason is the error for which there are none: accept reports it also if
// no connection is waiting.
func (l *Listener) useReserve(reason error) net.Conn {
	l.record.mu.Lock()
	defer l.record.mu.Unlock()
	for l.isWaiting() {
		if !l.restore() {
			l.limited.Error("no file descriptor is left: connections wait", "address", l.Addr().String(), "error", reason)
			return nil
		}
		l.drop()
		nc := l.acceptNow()
		if restored := l.restore(); nc == nil || restored {
			return nc
		}
		l.record.refused.Add(1)
		l.record.last.Store(time.Now().UnixNano())
		l.limited.Error("no file descriptor is left: connections are refused", "address", l.Addr().String(), "error", reason)
		l.close(nc)
		l.restore()
	}
	return nil
}

// isWaiting reports whether a connection is in the queue of the listener.
func (l *Listener) isWaiting() bool {
	if l.tcp == nil {
		return false
	}
	raw, err := l.tcp.SyscallConn()
	if err != nil {
		return false
	}
	waiting := false
	err = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // the kernel's type of descriptors
		waiting = err == nil && n > 0
	})
	return err == nil && waiting
}

// acceptNow accepts a connection that is waiting. It returns nil if the client has gone, or something else has taken the
// descriptor.
func (l *Listener) acceptNow() net.Conn {
	if l.tcp.SetDeadline(time.Now().Add(minDelay)) != nil {
		return nil
	}
	nc, err := l.tcp.Accept()
	l.tcp.SetDeadline(time.Time{}) //nolint:errcheck // it fails if the listener is closed, and then Accept fails
	if err != nil {
		return nil
	}
	return nc
}

// restore opens the reserve, and reports whether there is one.
func (l *Listener) restore() bool {
	if l.reserve == nil {
		if f, err := os.Open(os.DevNull); err == nil {
			l.reserve = f
		}
	}
	return l.reserve != nil
}

func (l *Listener) drop() {
	if l.reserve != nil {
		l.reserve.Close() //nolint:errcheck // it was not used
		l.reserve = nil
	}
}

// refusalTime is how long a refused connection may take. It delays the next one.
const refusalTime = 5 * time.Millisecond

// close refuses and closes a connection. What the client has sent is read first, because the kernel resets a connection that
// is closed with unread data, which may discard the answer.
func (l *Listener) close(nc net.Conn) {
	defer nc.Close() //nolint:errcheck // nothing can be done about it
	if l.refuse == nil || nc.SetDeadline(time.Now().Add(refusalTime)) != nil {
		return
	}
	l.refuse(nc)
	var request [16 << 10]byte
	nc.Read(request[:]) //nolint:errcheck // it is not looked at
}
