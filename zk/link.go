package zk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const (
	// maxPacket rejects packets of servers that are not ZooKeeper. ZooKeeper's own limit is 1 MiB by default.
	maxPacket = 64 << 20
	// minPacket is the size of a reply header, which the library reads without checking the length.
	minPacket = 16
	// afterHandshake delays the first reply after a handshake. When the library sets its watches again it reads the
	// last seen zxid, while the replies that it receives advance that zxid. The delay lets it read the zxid first;
	// otherwise a change could be missed.
	afterHandshake = 20 * time.Millisecond
	// minHandshake and maxHandshake bound the reply to a handshake: version, session timeout, session id, password, and
	// an optional flag.
	minHandshake, maxHandshake = 20, 256
)

// link checks the packets of a connection to a ZooKeeper server. The library trusts every length that it reads and
// waits long for the reply to a handshake; link bounds both. Read is called by one goroutine at a time.
type link struct {
	net.Conn
	stop          func() bool
	timeout       time.Duration // for the reply to the handshake
	handshake     bytes.Reader  // the unread rest of the reply to the handshake
	handshakeRead bool          // the reply to the handshake was read
	opened        bool          // the first packet after the handshake was read
	header        [4]byte
	pending       []byte // the unread rest of the current packet's header
	left          int    // unread bytes of the current packet
}

// newLink wraps conn, and closes it when ctx ends. The reply to the handshake must arrive within timeout.
func newLink(ctx context.Context, conn net.Conn, timeout time.Duration) *link {
	_ = conn.SetReadDeadline(time.Now().Add(timeout)) // if this fails, so does the read
	return &link{Conn: conn, timeout: timeout, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
}

func (l *link) Close() error {
	l.stop()
	return l.Conn.Close()
}

// SetReadDeadline has no effect before the handshake is complete.
func (l *link) SetReadDeadline(t time.Time) error {
	if !l.handshakeRead {
		return nil
	}
	return l.Conn.SetReadDeadline(t)
}

func (l *link) Read(p []byte) (int, error) {
	if !l.handshakeRead {
		err := l.readHandshake()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("no answer within %s: %w", l.timeout, err)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: handshake: %w", l.RemoteAddr(), err)
		}
	}
	if l.handshake.Len() > 0 {
		return l.handshake.Read(p)
	}
	if l.left == 0 {
		if err := l.nextPacket(); err != nil {
			return 0, err
		}
	}
	if len(l.pending) > 0 {
		n := copy(p, l.pending)
		l.pending = l.pending[n:]
		return n, nil
	}
	n, err := l.Conn.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// nextPacket reads the length of the next packet.
func (l *link) nextPacket() error {
	if !l.opened {
		time.Sleep(afterHandshake)
		l.opened = true
	}
	if _, err := io.ReadFull(l.Conn, l.header[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(l.header[:])
	if n < minPacket || n > maxPacket {
		return fmt.Errorf("%s: packet of %d bytes: not a ZooKeeper server", l.RemoteAddr(), n)
	}
	l.pending, l.left = l.header[:], int(n)
	return nil
}

// readHandshake reads the complete reply to the handshake.
func (l *link) readHandshake() error {
	if _, err := io.ReadFull(l.Conn, l.header[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(l.header[:])
	if n < minHandshake || n > maxHandshake {
		return fmt.Errorf("packet of %d bytes: not a ZooKeeper server", n)
	}
	reply := make([]byte, 4+n)
	copy(reply, l.header[:])
	if _, err := io.ReadFull(l.Conn, reply[4:]); err != nil {
		return err
	}
	timeout, session := int32(binary.BigEndian.Uint32(reply[8:])), binary.BigEndian.Uint64(reply[12:])
	if session != 0 && timeout <= 0 {
		return fmt.Errorf("session timeout of %d ms", timeout)
	}
	l.handshakeRead = true
	l.handshake = *bytes.NewReader(reply)
	return l.Conn.SetReadDeadline(time.Time{})
}
