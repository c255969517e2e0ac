package reads

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"sequins/proxy"
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
// there is no answer, as Scan does. Without a range, the numbers are those in the blocks' properties.
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
	return s.count(allPartitions(r.handle))
}

func (s *Scan) count(partitions []int) (total int64, o Outcome) {
	var away []partitionKeys
	for _, p := range partitions {
		b := s.r.handle.Block(p)
		n, start := int64(0), s.in.start
		if b != nil {
			if n, start, o = s.countLocal(p, b); o != Found {
				return 0, o
			}
			total += n
		}
		switch {
		case b != nil && start == nil:
		case s.in.whole() && !s.lost[p]:
			away = append(away, partitionKeys{partition: p})
		default:
			if n, o = s.countAway([]int{p}, start); o != Found {
				return 0, o
			}
			total += n
		}
	}
	n, o := s.countGroups(away)
	return total + n, o
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

// countGroups asks other nodes for the numbers of records of whole partitions.
func (s *Scan) countGroups(parts []partitionKeys) (total int64, o Outcome) {
	if len(parts) == 0 {
		return 0, Found
	}
	for _, g := range s.r.replicaGroups(parts, nil) {
		var all []int
		for _, p := range g.parts {
			all = append(all, p.partition)
		}
		for len(all) > 0 {
			some := all[:min(len(all), maxPagePartitions)]
			n, o := s.countAway(some, nil)
			if (o == Unreachable || o == Late) && len(g.parts) > 1 { // each may have other nodes
				n, o = s.countEach(some)
			}
			if o != Found {
				return 0, o
			}
			total, all = total+n, all[len(some):]
		}
	}
	return total, Found
}

// countEach asks for the number of records of each partition.
func (s *Scan) countEach(partitions []int) (total int64, o Outcome) {
	for _, p := range partitions {
		n, o := s.countAway([]int{p}, nil)
		if o != Found {
			return 0, o
		}
		total += n
	}
	return total, Found
}

// countAway asks other nodes for the number of records from start on, in slices if there is a range.
func (s *Scan) countAway(partitions []int, start []byte) (total int64, o Outcome) {
	switch r := s.r; {
	case r.reader.opts.Proxy == nil:
		return 0, Unreadable
	case s.ctx.Err() != nil:
		return 0, GivenUp
	}
	q := &PageRequest{kind: pageCount, partitions: partitions, start: start, end: s.in.end, limit: firstSlice}
	for {
		a, peers, err := s.fetchCount(q)
		switch {
		case err != nil && s.lost[partitions[0]]:
			return 0, Unreadable
		case err != nil && len(partitions) > 1 && errors.Is(err, proxy.ErrAbsent):
			return s.countHalves(partitions, start)
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

// countHalves counts partitions by halves: each of the nodes that have refused to count all of them may hold some.
func (s *Scan) countHalves(partitions []int, start []byte) (total int64, o Outcome) {
	half := len(partitions) / 2
	if total, o = s.countAway(partitions[:half], start); o != Found {
		return 0, o
	}
	rest, o := s.countAway(partitions[half:], start)
	return total + rest, o
}

// countAnswer is the answer to a PageRequest for a number: eight bytes, and the key to go on from if the range has more
// records.
type countAnswer struct {
	n    int64
	next []byte // nil if there are no more
}

func (s *Scan) fetchCount(q *PageRequest) (a countAnswer, peers []string, err error) {
	if peers, err = s.holdersOf(q.partitions, nil); err != nil {
		return a, nil, err
	}
	scale := 1 + len(q.partitions)/64 // for whole partitions, a node adds up numbers that it has
	if !s.in.whole() || s.lost[q.partitions[0]] {
		scale = 1 + int(q.limit/firstSlice)
	}
	pq := s.query(q, peers, scale)
	for {
		b, peer, err := s.fetchBytes(pq, nil, 8+maxBound)
		if err == nil {
			a, err = parseCount(b, q)
		}
		if err == nil || peer == "" {
			return a, pq.Peers, err
		}
		if err := s.distrust(pq, peer, err); err != nil {
			return a, peers, err
		}
	}
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

var errCountRange = errors.New("a range is counted in one partition at a time")

// countPage answers a request for a number of records. One with a range is for one partition.
func (r *Read) countPage(ctx context.Context, in interval, p *PageRequest) ([]byte, Outcome) {
	s := r.newScan(ctx, in, true, 0)
	s.span = maxSpan
	if !in.whole() && !r.reader.reserveScan(s, 2*maxSpan) {
		return nil, Busy
	}
	if !in.whole() && len(p.partitions) > 1 {
		r.reader.log.Error("counting for another node", "db", r.db.name, "error", errCountRange)
		return nil, NotLocal
	}
	var total int64
	for _, n := range p.partitions {
		b := r.handle.Block(n)
		if b == nil {
			return nil, NotLocal
		}
		if in.whole() {
			total += b.Properties().Records
			continue
		}
		return s.countSome(n, b, p.limit)
	}
	return binary.BigEndian.AppendUint64(nil, uint64(total)), Found
}

// countSome counts up to limit records of a block.
func (s *Scan) countSome(partition int, b version.Block, limit int64) ([]byte, Outcome) {
	it := b.IterWithin(s.in.start, s.in.end, s.span)
	var n int64
	for it.Next() {
		if n > 0 && n >= limit {
			return append(binary.BigEndian.AppendUint64(nil, uint64(n)), it.Key()...), Found
		}
		n++
	}
	if err := it.Err(); err != nil {
		s.report(partition, b, err)
		return nil, Unreadable
	}
	return binary.BigEndian.AppendUint64(nil, uint64(n)), Found
}
