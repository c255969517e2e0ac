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
	// maxFrame bounds the length of a namenode's response: Hadoop's own limit.
	// The library would allocate any length in the first four bytes; those of a
	// web server's response mean 1.2 GB.
	maxFrame = 128 << 20

	// peeked is how much of a response is parsed for an error.
	peeked = 16 << 10

	// maxMessage bounds the part of a namenode's message that is shown.
	maxMessage = 300

	// maxDatanodeAnswer bounds the length of a datanode's first message. Real
	// ones have a few hundred bytes.
	maxDatanodeAnswer = 1 << 20

	// dataBuffer is the size of reads from a datanode.
	dataBuffer = 256 << 10
)

// conn is a connection with a timeout for each exchange, which is closed when its
// context ends. The library sets no deadlines, but clears existing ones.
type conn struct {
	net.Conn
	ctx     context.Context
	timeout time.Duration
	stop    func() bool // stops watching ctx
}

func newConn(ctx context.Context, raw net.Conn, timeout time.Duration) *conn {
	return &conn{
		Conn: raw, ctx: ctx, timeout: timeout,
		stop: context.AfterFunc(ctx, func() { raw.Close() }),
	}
}

// moveDeadline restarts the timeout.
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

// cause replaces the error of a connection that was closed by its context with
// the context's cause.
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

// SetDeadline, SetReadDeadline and SetWriteDeadline have no effect: see conn.
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// namenodeConn is a connection to a namenode. The response must arrive within one
// timeout after the request was written.
//
// A response is a frame: its length in 4 bytes, then that many bytes. The frame
// is checked before the library parses it, since the library trusts every length
// and drops a namenode's error message.
type namenodeConn struct {
	*conn
	r        *bufio.Reader
	left     int           // rest of the current frame
	answered func(refusal) // called with the namenode's error, or the zero refusal before a request
	failed   func()        // called when the connection has failed
}

func newNamenodeConn(c *conn, answered func(refusal), failed func()) *namenodeConn {
	return &namenodeConn{conn: c, r: bufio.NewReaderSize(c, peeked), answered: answered, failed: failed}
}

// refusal is an error response of a namenode.
type refusal struct {
	class   string // Java class of the exception
	message string // first line
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

// nextFrame checks the header of the next response.
func (c *namenodeConn) nextFrame() error {
	head, err := c.r.Peek(4)
	if err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head)
	if n > maxFrame {
		return fmt.Errorf("%v is not a namenode's RPC port: got %q", c.RemoteAddr(), head)
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

// Fields of RpcResponseHeaderProto (hadoop-common, RpcHeader.proto).
const (
	fieldStatus    = 2 // 0 is success
	fieldException = 4
	fieldMessage   = 5
)

// parseRefusal parses the beginning of a response without its length, and reports
// whether it is an error.
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
			return r, ok // truncated within the message
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

// firstLine returns the first line of a field of bytes, which may be truncated.
// The other lines are a Java stack trace.
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

// datanodeConn is a connection to a datanode. It has no total time limit, but
// some data must arrive within each timeout.
type datanodeConn struct {
	*conn
	r       *bufio.Reader
	started bool
	sums    *blockSums // if the first message has to be a checksum
}

func newDatanodeConn(c *conn) *datanodeConn {
	return &datanodeConn{conn: c, r: bufio.NewReaderSize(patient{c}, dataBuffer)}
}

// patient restarts the deadline with each read.
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

var errNoDatanode = errors.New("not a datanode's response")

// start checks the length of the first message, which the library would allocate.
func (c *datanodeConn) start() error {
	head, err := c.r.Peek(binary.MaxVarintLen32)
	if err != nil {
		return err
	}
	length, n := binary.Uvarint(head)
	if n <= 0 || length > maxDatanodeAnswer {
		return fmt.Errorf("%v: %w", c.RemoteAddr(), errNoDatanode)
	}
	if c.sums != nil {
		answer, err := c.r.Peek(n + int(length))
		if err == nil {
			err = c.sums.add(answer[n:])
		}
		if err != nil {
			return fmt.Errorf("%v: %w", c.RemoteAddr(), err)
		}
	}
	c.started = true
	return nil
}
