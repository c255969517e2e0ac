package reads

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"sequins/blocks"
	"sequins/internal/wire"
	"sequins/proxy"
	"sequins/version"
)

// source gives the records of some partitions in ascending order of their keys. Key and value are valid until next.
type source interface {
	// next moves to the next record. It returns false at the end and after an error, see Scan.replace.
	next() bool
	key() []byte
	value() scanned
	// partitions are those that the source has the records of.
	partitions() []int
}

type localSource struct {
	partition int
	block     version.Block
	it        *blocks.Iterator
}

func (l *localSource) next() bool        { return l.it.Next() }
func (l *localSource) key() []byte       { return l.it.Key() }
func (l *localSource) partitions() []int { return []int{l.partition} }

func (l *localSource) value() scanned {
	v := l.it.Value()
	if v.Large() {
		return scanned{length: v.Len(), large: true, hash: v.Hash(), local: v}
	}
	return scanned{small: v.Bytes(), length: v.Len()}
}

// pager is the source of partitions that the same other nodes hold. It asks for them in pages, each a request of its own:
// a slow client delays nothing on other nodes, and every page can come from another one. While a page is merged,
// the next one is fetched.
type pager struct {
	s       *Scan
	parts   []int    // ascending
	peers   []string // that hold all parts; none if there are no such nodes
	avoid   []string // other nodes, which have failed for these parts
	tries   int      // failures of all nodes, one after the other
	got     int64    // records so far
	size    int      // of the page that is asked for next, in bytes
	page    page
	spare   []byte // of the page before
	pending bool
	asked   time.Time // when the last page was requested
	answers chan page
	failed  error

	k []byte
	v scanned
}

// page is the answer to a PageRequest for records. Its last record is followed by endOfPage and a byte, which is 1 if there
// are more records behind it.
type page struct {
	body []byte // what is left of it
	buf  []byte // all of it
	last []byte // key
	n    int64  // records
	more bool
	err  error
}

const (
	endOfPage = 1<<32 - 1
	// largeBit marks the length of a value that is not in the page. Its hash follows, of hashSize bytes.
	largeBit = 1 << 31
	hashSize = 8
	// maxRecord is the size in bytes of the largest record of a page, and maxPageEnd that of its end.
	maxSmallValue = blocks.LargeValue
	maxRecord     = 2*wire.LengthSize + blocks.MaxKey + maxSmallValue
	maxPageEnd    = wire.LengthSize + 1
)

var errPage = errors.New("a malformed page")

func (p *pager) key() []byte       { return p.k }
func (p *pager) value() scanned    { return p.v }
func (p *pager) partitions() []int { return p.parts }

// ask requests the page that follows the current one, unless it is the last.
func (p *pager) ask() {
	if !p.page.more || p.pending || p.s.limit > 0 && p.got > p.s.limit {
		return
	}
	in := interval{start: p.page.last, end: p.s.in.end}
	if p.got > 0 {
		in.start = successor(p.page.last)
	}
	q := &PageRequest{keysOnly: p.s.keys, partitions: p.parts, size: min(p.size, p.s.pageSize), interval: in}
	p.size = min(2*p.size, maxPage)
	if p.s.limit > 0 {
		q.limit = p.s.limit + 1 - p.got
	}
	buf := p.spare
	p.spare, p.pending, p.asked = nil, true, time.Now()
	p.s.running.Go(func() { p.answers <- p.fetchPage(q, buf) })
}

// next moves to the next record, and waits for its page if necessary.
func (p *pager) next() bool {
	for len(p.page.body) == 0 {
		if !p.pending {
			p.ask()
		}
		if p.failed != nil || !p.pending {
			return false
		}
		answer := <-p.answers
		p.pending = false
		p.spare, p.page = p.page.buf, answer
		if p.failed = answer.err; p.failed != nil {
			return false
		}
		p.got, p.tries = p.got+answer.n, 0
		p.ask()
	}
	p.k, p.v, p.page.body = cutScanned(p.page.body, p.s.keys)
	return true
}

// cutScanned splits the first record off a page that has been checked.
func cutScanned(b []byte, keysOnly bool) (key []byte, v scanned, rest []byte) {
	key, b, _ = wire.CutFrame(b)
	if keysOnly {
		return key, v, b
	}
	if n := binary.BigEndian.Uint32(b); n&largeBit != 0 {
		b = b[wire.LengthSize:]
		return key, scanned{length: int64(n &^ largeBit), large: true, hash: binary.BigEndian.Uint64(b)}, b[hashSize:]
	}
	small, b, _ := wire.CutFrame(b)
	return key, scanned{small: small, length: int64(len(small))}, b
}

// fetchPage requests a page from one of the nodes, and from the others if its answer is not what it should be.
func (p *pager) fetchPage(q *PageRequest, buf []byte) (a page) {
	pq := p.s.r.pageQuery(q, p.peers, 1+len(q.partitions)/4+q.size>>16, p.s.fields)
	buf, err := p.s.fetch(pq, buf, q.size+maxRecord+maxPageEnd, func(b []byte) (err error) {
		a, err = p.s.parsePage(q, b)
		return err
	})
	a.buf, a.err = buf, err
	return a
}

func (r *Read) pageQuery(q *PageRequest, peers []string, scale int, fields []proxy.Field) *proxy.Query {
	return &proxy.Query{Peers: peers, Path: AppendEscaped([]byte{'/'}, r.query.DB), Version: r.handle.Name, Content: r.labels.content,
		Params: append([]byte("page="), q.encode()...), Scale: scale, Prompt: q.kind != pageValue, Fields: fields, Trace: r.trace}
}

// fetch requests an answer of up to limit bytes that parse accepts, and reads it into buf, grown as needed.
func (s *Scan) fetch(q *proxy.Query, buf []byte, limit int, parse func(b []byte) error) ([]byte, error) {
	err := s.r.fetch(s.ctx, q, func(a *proxy.Answer) error {
		defer a.Body.Close() //nolint:errcheck // it was only read from
		if a.Status != http.StatusOK || a.Length < 0 || a.Length > int64(limit) {
			return fmt.Errorf("%w: status %d, %d bytes", errPage, a.Status, a.Length)
		}
		buf = slices.Grow(buf[:0], int(a.Length))[:a.Length]
		if _, err := io.ReadFull(a.Body, buf); err != nil {
			return err
		}
		return parse(buf)
	})
	return buf, err
}
