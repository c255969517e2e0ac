package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

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
	var all []string
	for _, p := range []struct {
		name  string
		value []byte
	}{{"prefix", g.Prefix}, {"start", g.Start}, {"end", g.End}} {
		if p.value != nil {
			all = append(all, p.name+"="+string(appendEscaped(nil, p.value)))
		}
	}
	if g.After != "" {
		all = append(all, "after="+url.QueryEscape(g.After))
	}
	if len(all) == 0 {
		all = append(all, "start=")
	}
	if g.Limit > 0 {
		all = append(all, fmt.Sprintf("limit=%d", g.Limit))
	}
	if g.KeysOnly {
		all = append(all, "keys_only")
	}
	return strings.Join(all, "&")
}

// Scan returns the records of a range in the order of their keys, all from one version.
func (c *Node) Scan(ctx context.Context, db string, g Range, want Want) (*Scan, error) {
	a, err := c.get(ctx, db, request{url: "/" + url.PathEscape(db) + "?" + g.query(), accept: wire.Bytes, want: want})
	if err != nil {
		return nil, err
	}
	frames, err := c.frames(a)
	if err != nil {
		return nil, err
	}
	return &Scan{frames: *frames}, nil
}

// Scan is a range of records.
type Scan struct {
	frames
	key    []byte
	cursor string
	ended  bool
}

// maxCursor limits a cursor, in bytes: it has a key, and the end of the range.
const maxCursor = 512 << 10

// Next goes to the next record. It returns false after the last and after an error.
func (s *Scan) Next() bool {
	if s.err != nil || s.ended {
		return false
	}
	n, ok := s.next()
	switch {
	case !ok:
		return false
	case n == wire.Absent:
		s.end()
		return false
	case n > MaxKey:
		s.err = s.strange(fmt.Sprintf("sends a key of %d bytes", n))
		return false
	}
	if s.key, ok = s.read(s.key, int(n)); !ok {
		return false
	}
	if n, ok = s.next(); ok {
		s.begin(int64(n))
	}
	return ok
}

// end reads what follows the last record.
func (s *Scan) end() {
	s.ended = true
	n, ok := s.next()
	if ok && n > maxCursor {
		s.err = s.strange(fmt.Sprintf("sends a cursor of %d bytes", n))
		return
	}
	if cursor, ok := s.read(nil, int(n)); ok {
		if !base64URL.Match(cursor) { // people paste it into a shell
			s.err = s.strange("sends a cursor that is not base64url")
			return
		}
		s.cursor = string(cursor)
		s.finish()
	}
}

// base64URL matches texts in the alphabet of base64url.
var base64URL = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)

// read reads n bytes into b or a larger slice.
func (s *Scan) read(b []byte, n int) ([]byte, bool) {
	if s.err != nil {
		return b, false
	}
	if cap(b) < n {
		b = make([]byte, n)
	}
	b = b[:n]
	if _, err := io.ReadFull(s.in, b); err != nil {
		s.err = s.from.ended(err)
		return b, false
	}
	return b, true
}

// Key returns the key of the current record, until Next.
func (s *Scan) Key() []byte { return s.key }

// Cursor returns where to go on with Range.After; "" if the range is finished.
func (s *Scan) Cursor() string { return s.cursor }

// Count returns the number of records in a range, of which Limit, After and KeysOnly are not used, and their version.
func (c *Node) Count(ctx context.Context, db string, g Range, want Want) (n int64, version string, err error) {
	g.Limit, g.After, g.KeysOnly = 0, "", false
	query := "count"
	if q := g.query(); q != "start=" {
		query += "&" + q
	}
	a, err := c.get(ctx, db, request{url: "/" + url.PathEscape(db) + "?" + query, want: want, patient: true})
	if err != nil {
		return 0, "", err
	}
	defer a.body.Close() //nolint:errcheck // it is only read
	var said struct {
		Version string `json:"version"`
		Count   *int64 `json:"count"`
	}
	text, err := io.ReadAll(io.LimitReader(a.body, 4<<10))
	if err != nil {
		return 0, "", err
	}
	if json.Unmarshal(text, &said) != nil || said.Count == nil || said.Version == "" {
		return 0, "", &NodeError{Kind: ErrStrange, URL: c.shown, text: notSequins}
	}
	return *said.Count, said.Version, nil
}
