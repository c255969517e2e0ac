package conns

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"

	"sequins/internal/limitlog"
)

// Patient returns a listener like ln whose Accept fails only for good. For want of a file descriptor or of memory it logs and waits, while
// the kernel keeps the connections in a queue.
func Patient(ln net.Listener, log *slog.Logger) net.Listener { return &patient{ln, limitlog.New(log)} }

type patient struct {
	net.Listener
	log *limitlog.Logger
}

// acceptPause is the pause after a temporary error.
const acceptPause = 50 * time.Millisecond

func (l *patient) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err == nil || !isTemporary(err) {
			return nc, err
		}
		l.log.Error("accepting a connection", "address", l.Addr().String(), "error", err)
		time.Sleep(acceptPause)
	}
}

func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary() || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}
