package reads

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"sequins/version"
)

const (
	// firstSlice is the number of records that the first request to another node counts at most. Each may count twice as
	// many as the one before it, up to maxSlice: the less it counts, the sooner another node is asked.
	firstSlice = 8 << 10
	maxSlice   = 128 << 10
	// recordsPerCheck is the number of records after which a local count looks whether it is still wanted.
	recordsPerCheck = 4096
)

// Count counts the records of a range; g.After, g.KeysOnly and g.Limit are not used. It returns Found, or the reason why
// there is no answer, as Scan does. Without a range, the numbers are those in the blocks' properties and in the reports of other nodes.
func (r *Read) Count(ctx context.Context, q *Query, g *Range) (int64, Outcome) {
	if o := r.open(q); o != Found {
		return 0, o
	}
	r.counts = r.db.counts.Scans
	s := r.newScan(ctx, g.interval(), true, 0)
	if q.Head || s.in.empty() {
		return 0, Found
	}
	s.span = maxSpan
	if !s.in.whole() && !r.reader.reserveScan(s, 2*maxSpan) {
		return 0, Busy
	}
	return s.count()
}

func (s *Scan) count() (total int64, o Outcome) {
	reported := make(map[int]int64) // records, of whole partitions of other nodes
	if s.in.whole() {
		for _, b := range reportedBlocks(s.r.handle) {
			reported[b.Partition] = b.Records
		}
	}
	for p := range s.r.handle.Partitions() {
		n, start, o := int64(0), s.in.start, Found
		b := s.r.handle.Block(p)
		if b != nil {
			n, start, o = s.countLocal(p, b)
			total += n
		} else if records, known := reported[p]; known {
			total += records
			continue
		}
		if o == Found && (b == nil || start != nil) {
			n, o = s.countAway(p, start)
			total += n
		}
		if o != Found {
			return 0, o
		}
	}
	return total, Found
}

// countLocal counts the records of a block. If it fails in the middle, start is where other nodes go on; otherwise it is
// nil.
func (s *Scan) countLocal(partition int, b version.Block) (n int64, start []byte, o Outcome) {
	if s.in.whole() {
		return b.Properties().Records, nil, Found
	}
	it := b.IterWithin(s.in.start, s.in.end, s.span)
	var last []byte
	for it.Next() {
		last = append(last[:0], it.Key()...)
		if n++; n%recordsPerCheck == 0 && s.ctx.Err() != nil {
			return 0, nil, GivenUp
		}
	}
	if err := it.Err(); err != nil {
		s.report(partition, b, err)
		if n > 0 {
			return n, successor(last), Found
		}
		return 0, append([]byte{}, s.in.start...), Found
	}
	return n, nil, Found
}

// countAway asks other nodes for the number of records of a partition from start on, in slices.
func (s *Scan) countAway(partition int, start []byte) (total int64, o Outcome) {
	switch r := s.r; {
	case r.reader.opts.Proxy == nil:
		return 0, Unreadable
	case s.ctx.Err() != nil:
		return 0, GivenUp
	}
	q := &PageRequest{kind: pageCount, partitions: []int{partition}, start: start, end: s.in.end, limit: firstSlice}
	for {
		peers, err := s.holdersOf(q.partitions, nil)
		var a countAnswer
		if err == nil {
			_, err = s.fetch(s.query(q, peers, 1+int(q.limit/firstSlice)), nil, 8+maxBound, func(b []byte) (err error) {
				a, err = parseCount(b, q)
				return err
			})
		}
		switch {
		case err != nil && s.lost[partition]:
			return 0, Unreadable
		case err != nil:
			return 0, s.r.fetchError(peers, err)
		}
		total += a.n
		if a.next == nil {
			return total, Found
		}
		q.start, q.limit = a.next, min(2*q.limit, maxSlice)
	}
}

// countAnswer is the answer to a PageRequest for a number: eight bytes, and the key to go on from if the range has more
// records.
type countAnswer struct {
	n    int64
	next []byte // nil if there are no more
}

// parseCount checks an answer: its number, and that it makes progress.
func parseCount(b []byte, q *PageRequest) (a countAnswer, err error) {
	if len(b) < 8 || binary.BigEndian.Uint64(b) > math.MaxInt64/maxPartitions {
		return a, fmt.Errorf("%w: of a number", errPage)
	}
	a.n = int64(binary.BigEndian.Uint64(b))
	if len(b) == 8 {
		return a, nil
	}
	a.next = b[8:]
	if string(a.next) <= string(q.start) || q.end != nil && string(a.next) >= string(q.end) || a.n == 0 || len(a.next) > maxBound {
		return a, fmt.Errorf("%w: a key outside of the range", errPage)
	}
	return a, nil
}

// countPage answers a request for the number of records of a partition.
func (r *Read) countPage(ctx context.Context, in interval, p *PageRequest) ([]byte, Outcome) {
	if len(p.partitions) != 1 {
		return nil, NotLocal
	}
	b := r.handle.Block(p.partitions[0])
	if b == nil {
		return nil, NotLocal
	}
	if in.whole() {
		return binary.BigEndian.AppendUint64(nil, uint64(b.Properties().Records)), Found
	}
	s := r.newScan(ctx, in, true, 0)
	s.span = maxSpan
	if !r.reader.reserveScan(s, 2*maxSpan) {
		return nil, Busy
	}
	it, n := b.IterWithin(in.start, in.end, s.span), int64(0)
	var next []byte // the key behind those that are counted, if there is one
	for it.Next() {
		if n > 0 && n >= p.limit {
			next = it.Key()
			break
		}
		n++
	}
	if err := it.Err(); err != nil {
		s.report(p.partitions[0], b, err)
		return nil, Unreadable
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(n)), next...), Found
}
