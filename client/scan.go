package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"

	"sequins/internal/wire"
)

// Range selects records by their keys. The zero value is the whole database.
type Range struct {
	Prefix, Start, End []byte // nil if not given
	Limit              int64  // 0 for none
	After              string // a cursor
	KeysOnly           bool
}

// query returns the parameters of the request.
func (g Range) query() string {
	all := make(url.Values)
	for name, value := range map[string][]byte{"prefix": g.Prefix, "start": g.Start, "end": g.End} {
		if value != nil {
			all.Set(name, string(value))
		}
	}
	if g.After != "" {
		all.Set("after", g.After)
	}
	if len(all) == 0 {
		all.Set("start", "")
	}
	if g.Limit > 0 {
		all.Set("limit", strconv.FormatInt(g.Limit, 10))
	}
	if g.KeysOnly {
		all.Set("keys_only", "")
	}
	return all.Encode()
}

// Scan returns the records of a range in the order of their keys, all from one version.
func (c *Node) Scan(ctx context.Context, db string, g Range, want Want) (*Scan, error) {
	a, err := c.getFrames(ctx, db, request{url: "/" + url.PathEscape(db) + "?" + g.query(), want: want}) //nolint:bodyclose // Scan.Close closes it
	if err != nil {
		return nil, err
	}
	return &Scan{Version: a.Header.Get(wire.Version), from: c, body: a.Body, in: bufio.NewReaderSize(a.Body, 64<<10)}, nil
}

// Scan is a range of records.
type Scan struct {
	// Version is the version that they are from.
	Version string

	from   *Node
	body   io.Closer
	in     *bufio.Reader
	key    []byte
	left   int64 // of the current value, in bytes
	cursor string
	ended  bool
	err    error
}

// maxCursor limits a cursor, in bytes: it has a key, and the end of the range.
const maxCursor = 512 << 10

// Next goes to the next record. It returns false after the last and after an error.
func (s *Scan) Next() bool {
	if s.err != nil || s.ended || s.WriteValue(io.Discard) != nil {
		return false
	}
	n := s.length()
	switch {
	case s.err != nil:
		return false
	case n == wire.Absent:
		s.end()
		return false
	case n > MaxKey:
		s.err = s.from.strange(fmt.Sprintf("sends a key of %d bytes", n))
		return false
	}
	s.key = s.read(s.key, int(n))
	s.left = int64(s.length())
	return s.err == nil
}

// end reads what follows the last record.
func (s *Scan) end() {
	s.ended = true
	n := s.length()
	if s.err == nil && n > maxCursor {
		s.err = s.from.strange(fmt.Sprintf("sends a cursor of %d bytes", n))
	}
	cursor := s.read(nil, int(n))
	if s.err != nil {
		return
	}
	if !base64URL.Match(cursor) { // people paste it into a shell
		s.err = s.from.strange("sends a cursor that is not base64url")
		return
	}
	s.cursor = string(cursor)
	if _, err := s.in.ReadByte(); err == nil {
		s.err = s.from.strange("sends more than was asked for")
	} else if err != io.EOF {
		s.err = s.from.ended(err)
	}
}

// base64URL matches texts in the alphabet of base64url.
var base64URL = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)

// length reads a length; it returns 0 after an error.
func (s *Scan) length() (n uint32) {
	if s.err == nil {
		n, s.err = wire.ReadLength(s.in)
		s.err = s.from.ended(s.err)
	}
	return n
}

// read reads n bytes into b or a larger slice.
func (s *Scan) read(b []byte, n int) []byte {
	if s.err != nil {
		return nil
	}
	if cap(b) < n {
		b = make([]byte, n)
	}
	_, err := io.ReadFull(s.in, b[:n])
	s.err = s.from.ended(err)
	return b[:n]
}

// WriteValue writes what is left of the current value. An error is that of Err, too.
func (s *Scan) WriteValue(w io.Writer) error {
	if s.err == nil {
		n, err := io.CopyN(w, s.in, s.left)
		s.left -= n
		s.err = s.from.ended(err)
	}
	return s.err
}

// Key returns the key of the current record, until Next.
func (s *Scan) Key() []byte { return s.key }

// Cursor returns where to go on with Range.After; "" if the range is finished.
func (s *Scan) Cursor() string { return s.cursor }

// Err returns why Next has ended; nil at the end of a complete answer.
func (s *Scan) Err() error { return s.err }

// Close ends the request.
func (s *Scan) Close() error { return s.body.Close() }

// ended returns the error for an answer that ended in the middle.
func (c *Node) ended(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return c.brokenOff(err)
	}
	return err
}
