package resp

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"time"

	"sequins/observe/tracing"
	"sequins/reads"
)

// Limits of HSCAN and SCAN.
const (
	defaultCount = 10
	maxCount     = 10_000
	// pageBytes is the size from which a page ends before it has as many records as the client wants.
	pageBytes = 1 << 20
)

const (
	errCursor  = "ERR invalid cursor"
	errPattern = "ERR only patterns of the form prefix* are supported"
)

// scanning is one call of HSCAN or SCAN.
type scanning struct {
	db       []byte
	prepend  []byte // to the keys of the answer
	prefix   []byte
	whole    bool // prefix is a key
	count    int64
	noValues bool

	records [][]byte // keys, or keys and values
	size    int64
	last    []byte // key
	next    []byte // where the next page begins, see position; nil if there is none
}

func (c *conn) hscan(args [][]byte) {
	s := scanning{db: args[1], count: defaultCount}
	text := s.parse(args[3:], true)
	c.scanPage(&s, args[2], text)
}

func (c *conn) scan(args [][]byte) {
	s := scanning{db: c.selected, count: defaultCount, noValues: true}
	text := s.parse(args[2:], false)
	if text == "" && s.db == nil {
		i := bytes.IndexByte(s.prefix, '/')
		if i < 0 {
			c.w.fail("ERR no database is named: SELECT one, or MATCH db/prefix*")
			return
		}
		s.db, s.prepend, s.prefix = s.prefix[:i], s.prefix[:i+1], s.prefix[i+1:]
	}
	c.scanPage(&s, args[1], text)
}

// parse parses the options. It returns an error text, or "".
func (s *scanning) parse(options [][]byte, isHash bool) string {
	for i := 0; i < len(options); i++ {
		left := len(options) - 1 - i
		switch o := options[i]; {
		case is(o, "NOVALUES") && isHash:
			s.noValues = true
			continue
		case left == 0:
			return errSyntax
		case is(o, "MATCH"):
			var ok bool
			if s.prefix, s.whole, ok = parsePattern(options[i+1]); !ok {
				return errPattern
			}
		case is(o, "COUNT"):
			n, ok := parseInteger(options[i+1])
			switch {
			case !ok:
				return errInteger
			case n < 1:
				return errSyntax
			}
			s.count = min(n, maxCount)
		case is(o, "TYPE") && !isHash:
			if !is(options[i+1], "STRING") {
				return "ERR all values are of the type string"
			}
		default:
			return errSyntax
		}
		i++
	}
	return ""
}

// parsePattern returns the prefix of a pattern that ends in *, or the key of one without special characters.
func parsePattern(pattern []byte) (prefix []byte, whole, ok bool) {
	prefix = []byte{}
	for i := 0; i < len(pattern); i++ {
		switch b := pattern[i]; {
		case b == '*':
			return prefix, false, len(bytes.Trim(pattern[i:], "*")) == 0
		case b == '?' || b == '[':
			return nil, false, false
		case b == '\\' && i+1 < len(pattern):
			i++
			prefix = append(prefix, pattern[i])
		default:
			prefix = append(prefix, b)
		}
	}
	return prefix, true, true
}

// scanPage answers with a page of records, unless there is an error text.
func (c *conn) scanPage(s *scanning, cursor []byte, text string) {
	if text == "" {
		text = c.readable(s.db)
	}
	id, err := strconv.ParseUint(string(cursor), 10, 64)
	after, known := c.server.cursors.find(id, s.db)
	switch {
	case text != "":
		c.w.fail(text)
		return
	case err != nil, id != 0 && !known:
		c.w.fail(errCursor)
		return
	}
	defer c.round.Release() // when what it has reserved is sent
	if o := c.readPage(s, after); o != reads.Found {
		c.w.fail(failures[o].text)
		return
	}
	next := uint64(0)
	if s.next != nil {
		next = c.server.cursors.add(position{db: string(s.db), cursor: s.next})
	}
	c.w.array(2)
	c.w.text(strconv.FormatUint(next, 10))
	c.w.array(len(s.records))
	for _, b := range s.records {
		c.bulk(b)
	}
}

// readPage reads the records of a page behind a cursor. The caller releases the Read.
func (c *conn) readPage(s *scanning, after []byte) reads.Outcome {
	b, r := &c.round.reading, &c.round.Read
	defer b.clear()
	g := reads.Range{Prefix: s.prefix, After: after, KeysOnly: s.noValues, Limit: s.count + 1}
	if s.whole {
		g.Prefix, g.Start, g.End = nil, s.prefix, append(bytes.Clone(s.prefix), 0)
	}
	r.Begin(time.Now())
	defer r.LetGo() // the records are copies
	c.ask(s.db, nil)
	scan, o := r.Scan(context.Background(), &b.query, &g)
	if o == reads.Found {
		o = s.collect(r, scan)
	}
	r.Done(tracing.Answer{Status: status(o), Bytes: s.size})
	return o
}

// collect copies records until the page is full.
func (s *scanning) collect(r *reads.Read, scan *reads.Scan) reads.Outcome {
	for n := int64(0); scan.Next(); n++ {
		if n == s.count || s.size >= pageBytes {
			s.next = scan.CursorBehind(s.last)
			return reads.Found
		}
		key := scan.Key()
		size := int64(len(key)) + scan.Length()
		if o := r.Reserve(size); o != reads.Found && n > 0 {
			s.next = scan.CursorBehind(s.last)
			return reads.Found
		} else if o != reads.Found {
			return o
		}
		s.size += size
		s.last = append(s.last[:0], key...)
		s.records = append(s.records, append(append([]byte{}, s.prepend...), key...)) // not nil, which is null
		if s.noValues {
			continue
		}
		value := make([]byte, scan.Length())
		if !scan.Large() {
			copy(value, scan.Value())
		} else if o := readLarge(scan, value); o != reads.Found {
			return o
		}
		s.records = append(s.records, value)
	}
	return scan.Outcome()
}

func readLarge(scan *reads.Scan, value []byte) reads.Outcome {
	body := scan.Open()
	defer body.Close() //nolint:errcheck // it was only read from
	_, err := io.ReadFull(body, value)
	if o := scan.Outcome(); err == nil || o != reads.Found {
		return o
	}
	return reads.Unreadable
}

func (c *conn) hlen(args [][]byte) { c.size(args[1]) }

func (c *conn) dbSize([][]byte) {
	if c.selected == nil {
		c.w.fail("ERR no database is named: SELECT one, or HLEN db")
		return
	}
	c.size(c.selected)
}

// size answers with the number of records of a db.
func (c *conn) size(db []byte) {
	if text := c.readable(db); text != "" {
		c.w.fail(text)
		return
	}
	b, r := &c.round.reading, &c.round.Read
	defer b.clear()
	r.Begin(time.Now())
	defer r.Release()
	c.ask(db, nil)
	n, o := r.Count(context.Background(), &b.query, &reads.Range{})
	r.Done(tracing.Answer{Status: status(o)})
	if o != reads.Found {
		c.w.fail(failures[o].text)
		return
	}
	c.w.integer(n)
}

// parseInteger parses an integer as Redis does: without a plus sign, leading zeros and blanks.
func parseInteger(b []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || b[0] == '+' {
		return 0, false
	}
	digits := bytes.TrimPrefix(b, []byte{'-'})
	return n, string(b) == "0" || digits[0] != '0'
}
