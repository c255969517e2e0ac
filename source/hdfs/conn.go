package hdfs

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// maxFrame is the length of the longest answer of a namenode that is
	// believed: Hadoop's own limit. The library would allocate whatever the
	// first four bytes of the answer say, and those of a web server say 1.2 GB.
	maxFrame = 128 << 20

	// peeked is how much of an answer is looked at for an error.
	peeked = 16 << 10

	// maxMessage is how much of a namenode's message is shown.
	maxMessage = 300

	// maxDatanodeAnswer is the length of the longest first message of a
	// datanode that is believed. Real ones are a few hundred bytes.
	maxDatanodeAnswer = 1 << 20

	// dataBuffer is how much of a datanode's stream is taken at a time.
	dataBuffer = 256 << 10
)

// A conn is a connection that never waits for longer than its timeout, and
// that ends with its context. The library sets no deadlines of its own, but
// takes away those that are there.
type conn struct {
	net.Conn
	ctx     context.Context
	timeout time.Duration
	stop    func() bool // no longer watch ctx
}

func newConn(ctx context.Context, raw net.Conn, timeout time.Duration) *conn {
	return &conn{
		Conn: raw, ctx: ctx, timeout: timeout,
		stop: context.AfterFunc(ctx, func() { raw.Close() }),
	}
}

// moveDeadline gives the server another timeout to say something.
func (c *conn) moveDeadline() error {
	return c.Conn.SetDeadline(time.Now().Add(c.timeout))
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.cause(err)
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.moveDeadline(); err != nil {
		return 0, c.cause(err)
	}
	n, err := c.Conn.Write(p)
	return n, c.cause(err)
}

// cause replaces the error of a connection that was closed because of its
// context by what ended that.
func (c *conn) cause(err error) error {
	if err != nil && c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return err
}

func (c *conn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// SetDeadline and its like do nothing: see conn.
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// A namenodeConn is a connection to a namenode. The answer to a request has
// to be there one timeout after it was written.
//
// An answer is a frame: its length in 4 bytes, and so many bytes. They are
// looked at before the library sees them, which believes every length, and
// which loses what a namenode says about an error.
type namenodeConn struct {
	*conn
	r        *bufio.Reader
	left     int           // of the frame that is being handed out
	answered func(refusal) // is told what the namenode says in place of an answer; nothing, as it is asked
	failed   func()        // is told that the connection is of no more use
}

func newNamenodeConn(c *conn, answered func(refusal), failed func()) *namenodeConn {
	return &namenodeConn{conn: c, r: bufio.NewReaderSize(c, peeked), answered: answered, failed: failed}
}

// A refusal is an error that a namenode answers with.
type refusal struct {
	class   string // of the Java exception
	message string // its first line
}

func (c *namenodeConn) Write(p []byte) (int, error) {
	c.answered(refusal{})
	n, err := c.conn.Write(p)
	if err != nil {
		c.failed()
	}
	return n, err
}

func (c *namenodeConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		if err := c.nextFrame(); err != nil {
			c.failed()
			return 0, err
		}
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	if err != nil {
		c.failed()
	}
	return n, err
}

// nextFrame looks at the beginning of the next answer.
func (c *namenodeConn) nextFrame() error {
	head, err := c.r.Peek(4)
	if err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head)
	if n > maxFrame {
		return fmt.Errorf("%v is no namenode's RPC port: it answered with %q", c.RemoteAddr(), head)
	}
	frame, err := c.r.Peek(min(4+int(n), peeked))
	if err != nil {
		return err
	}
	c.left = 4 + int(n)
	if r, ok := parseRefusal(frame[4:]); ok {
		c.answered(r)
	}
	return nil
}

// The fields of RpcResponseHeaderProto (hadoop-common, RpcHeader.proto).
const (
	fieldStatus    = 2 // 0 is success
	fieldException = 4
	fieldMessage   = 5
)

// parseRefusal reads the header of an answer, of which frame is the beginning
// and which follows its own length. It reports whether that is an error.
func parseRefusal(frame []byte) (r refusal, ok bool) {
	length, n := protowire.ConsumeVarint(frame)
	if n < 0 {
		return r, false
	}
	for b := frame[n:][:min(length, uint64(len(frame)-n))]; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return r, ok
		}
		b = b[n:]
		if typ == protowire.BytesType && num == fieldMessage {
			r.message = firstLine(b)
		}
		value := protowire.ConsumeFieldValue(num, typ, b)
		if value < 0 {
			return r, ok // cut off, within the message
		}
		switch {
		case num == fieldStatus && typ == protowire.VarintType:
			status, _ := protowire.ConsumeVarint(b)
			ok = status != 0
		case num == fieldException && typ == protowire.BytesType:
			class, _ := protowire.ConsumeBytes(b)
			r.class = printable(class)
		}
		b = b[value:]
	}
	return r, ok
}

// firstLine returns the first line of a field of bytes, which may be cut off:
// what follows is where in Java it happened.
func firstLine(field []byte) string {
	length, n := protowire.ConsumeVarint(field)
	if n < 0 {
		return ""
	}
	text := field[n:][:min(length, uint64(len(field)-n))]
	line, _, _ := strings.Cut(string(text), "\n")
	return printable([]byte(line))
}

func printable(b []byte) string {
	b = b[:min(len(b), maxMessage)]
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(string(b), ""))
}

// A datanodeConn is a connection to a datanode. It may take any time as a
// whole, but something has to come every timeout.
type datanodeConn struct {
	*conn
	r       *bufio.Reader
	started bool
}

func newDatanodeConn(c *conn) *datanodeConn {
	return &datanodeConn{conn: c, r: bufio.NewReaderSize(patient{c}, dataBuffer)}
}

// patient moves the deadline with each read.
type patient struct{ c *conn }

func (p patient) Read(b []byte) (int, error) {
	if err := p.c.moveDeadline(); err != nil {
		return 0, p.c.cause(err)
	}
	return p.c.Read(b)
}

func (c *datanodeConn) Read(p []byte) (int, error) {
	if !c.started {
		if err := c.start(); err != nil {
			return 0, err
		}
	}
	return c.r.Read(p)
}

var errNoDatanode = errors.New("it does not answer as a datanode")

// start looks at the length of the first message, which the library would
// allocate.
func (c *datanodeConn) start() error {
	head, err := c.r.Peek(binary.MaxVarintLen32)
	if err != nil {
		return err
	}
	if length, n := binary.Uvarint(head); n <= 0 || length > maxDatanodeAnswer {
		return fmt.Errorf("%v: %w", c.RemoteAddr(), errNoDatanode)
	}
	c.started = true
	return nil
}
