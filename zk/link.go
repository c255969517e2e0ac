package zk

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// A packet that is longer than this is none of ZooKeeper's. Its own limit is 1 MiB unless it is configured.
	maxPacket = 64 << 20
	// minPacket is the header of a reply, which the library takes for granted.
	minPacket = 16
	// afterHandshake is how long the first reply after a handshake is held back. The library reads up to where it has
	// seen changes, to have its watches set again from there, while it takes replies, which move that on. With this it
	// has the time; else a change could escape it.
	afterHandshake = 20 * time.Millisecond
	// The reply to a handshake: version, session timeout, session id, a password, and perhaps a flag.
	minHandshake, maxHandshake = 20, 256
)

// A link is a connection to something that ought to be a ZooKeeper server. The library believes every length that it
// reads, and waits long for the reply to a handshake: a link sees to both. Read is called by one goroutine at a time.
type link struct {
	net.Conn
	stop      func() bool
	handshake bytes.Reader // the reply to the handshake, as far as it was not read yet
	shaken    bool         // it was received
	opened    bool         // so was what came next
	header    [4]byte
	pending   []byte // of the header of the packet at hand, what was not read yet
	left      int    // of that packet, bytes that were not read yet
}

// newLink takes over a connection, which is closed when ctx ends. The reply to the handshake has to be there in time.
func newLink(ctx context.Context, conn net.Conn, timeout time.Duration) *link {
	_ = conn.SetReadDeadline(time.Now().Add(timeout)) // if it fails, so does the read
	return &link{Conn: conn, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
}

func (l *link) Close() error {
	l.stop()
	return l.Conn.Close()
}

// SetReadDeadline is without effect before the handshake is done.
func (l *link) SetReadDeadline(t time.Time) error {
	if !l.shaken {
		return nil
	}
	return l.Conn.SetReadDeadline(t)
}

func (l *link) Read(p []byte) (int, error) {
	if !l.shaken {
		if err := l.shake(); err != nil {
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

// nextPacket reads how long the next packet is.
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
		return fmt.Errorf("%s: a packet of %d bytes: it is not a ZooKeeper server", l.RemoteAddr(), n)
	}
	l.pending, l.left = l.header[:], int(n)
	return nil
}

// shake reads the reply to the handshake, whole.
func (l *link) shake() error {
	if _, err := io.ReadFull(l.Conn, l.header[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(l.header[:])
	if n < minHandshake || n > maxHandshake {
		return fmt.Errorf("a packet of %d bytes: it is not a ZooKeeper server", n)
	}
	reply := make([]byte, 4+n)
	copy(reply, l.header[:])
	if _, err := io.ReadFull(l.Conn, reply[4:]); err != nil {
		return err
	}
	timeout, session := int32(binary.BigEndian.Uint32(reply[8:])), binary.BigEndian.Uint64(reply[12:])
	if session != 0 && timeout <= 0 {
		return fmt.Errorf("a session timeout of %d ms", timeout)
	}
	l.shaken = true
	l.handshake = *bytes.NewReader(reply)
	return l.Conn.SetReadDeadline(time.Time{})
}
