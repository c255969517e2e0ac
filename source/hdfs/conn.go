package hdfs

import (
	"bufio"
	"bytes"
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

	// leastData is what a datanode has to send in each timeout: one that sends less
	// is as good as silent, and others have the same blocks.
	leastData = 64 << 10
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

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.cause(err)
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.Conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
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
}

func newNamenodeConn(c *conn, answered func(refusal)) *namenodeConn {
	return &namenodeConn{conn: c, r: bufio.NewReaderSize(c, peeked), answered: answered}
}

// refusal is an error response of a namenode.
type refusal struct {
	class   string // Java class of the exception
	message string // first line
}

func (c *namenodeConn) Write(p []byte) (int, error) {
	c.answered(refusal{})
	return c.conn.Write(p)
}

func (c *namenodeConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		if err := c.nextFrame(); err != nil {
			return 0, err
		}
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
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
// whether it is an error. Of the message, only the first line is not a Java stack
// trace.
func parseRefusal(frame []byte) (r refusal, ok bool) {
	header := truncatedBytes(frame)
	status, _ := protoField(header, fieldStatus)
	_, class := protoField(header, fieldException)
	_, message := protoField(header, fieldMessage)
	line, _, _ := bytes.Cut(message, []byte("\n"))
	return refusal{printable(class), printable(line)}, status != 0
}

// protoField returns the value of a field of a message, which may be truncated: a
// number or bytes.
func protoField(message []byte, want protowire.Number) (number uint64, text []byte) {
	for len(message) > 0 {
		num, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			break
		}
		message = message[n:]
		switch {
		case num == want && typ == protowire.VarintType:
			number, _ = protowire.ConsumeVarint(message)
		case num == want && typ == protowire.BytesType:
			text = truncatedBytes(message)
		}
		if n = protowire.ConsumeFieldValue(num, typ, message); n < 0 {
			break
		}
		message = message[n:]
	}
	return number, text
}

// truncatedBytes returns bytes after their length, or as many as there are.
func truncatedBytes(b []byte) []byte {
	length, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return nil
	}
	return b[n:][:min(length, uint64(len(b)-n))]
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

type datanodeConn struct {
	*conn
	r       *bufio.Reader
	started bool
	sums    *blockSums // if the first message has to be a checksum
}

func newDatanodeConn(c *conn) *datanodeConn {
	return &datanodeConn{conn: c, r: bufio.NewReaderSize(&flow{conn: c}, dataBuffer)}
}

// flow reads a connection without a total time limit, but leastData must arrive
// within each timeout. Time between reads does not count.
type flow struct {
	*conn
	waited time.Duration // for data
	data   int           // that came meanwhile
}

func (f *flow) Read(p []byte) (int, error) {
	start := time.Now()
	if err := f.Conn.SetDeadline(start.Add(f.timeout - f.waited)); err != nil {
		return 0, f.cause(err)
	}
	n, err := f.conn.Read(p)
	f.waited += time.Since(start)
	if f.data += n; f.data >= leastData {
		f.waited, f.data = 0, 0
	}
	return n, err
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
