package reads

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"sequins/internal/wire"
)

// Page answers a request of another node for records, or for the summary of a partition, from local partitions alone. After Found, the
// answer is complete; it is valid until Release. The request for a large value is answered with Do.
func (r *Read) Page(ctx context.Context, q *Query, p *PageRequest) ([]byte, Outcome) {
	if o := r.openAny(q); o != Found { // a comparison reads versions that are withheld, too
		return nil, o
	}
	for _, n := range p.partitions {
		if !r.handle.Has(n) {
			return nil, NotLocal
		}
	}
	if p.kind == pageSummary {
		if len(p.partitions) == 1 {
			if b := r.handle.Block(p.partitions[0]); b != nil {
				return summaryOf(b).encode(), Found
			}
		}
		return nil, NotLocal
	}
	s := r.newScan(ctx, p.interval, p.keysOnly, 0)
	if o := s.begin(p.partitions); o != Found {
		return nil, o
	}
	room := p.size
	if p.limit > 0 {
		room = min(room, minPage)
	}
	b := s.appendPage(make([]byte, 0, room+maxPageEnd), p)
	return b, s.outcome
}

// appendPage appends the records of a page, each as its key and value in the form of a batch, and their end. A large value
// is not in the page: there are its length, with largeBit, and its hash.
func (s *Scan) appendPage(b []byte, p *PageRequest) []byte {
	more := byte(0)
	for s.Next() {
		if len(b) > 0 && (len(b) >= p.size || p.limit > 0 && s.records > p.limit) {
			more = 1
			break
		}
		b = s.appendRecord(b)
	}
	return append(binary.BigEndian.AppendUint32(b, endOfPage), more)
}

func (s *Scan) appendRecord(b []byte) []byte {
	key := s.current.Key
	b = wire.AppendFrame(b, key)
	switch {
	case s.keys:
		return b
	case s.item.large:
		b = binary.BigEndian.AppendUint32(b, uint32(s.item.length)|largeBit)
		return binary.BigEndian.AppendUint64(b, s.item.hash)
	}
	return wire.AppendFrame(b, s.item.small)
}

// parsePage checks a page: its form, and that its keys ascend, are in the range that was asked for and in the partitions.
func (s *Scan) parsePage(q *PageRequest, b []byte) (page, error) {
	a := page{body: b}
	for rest := b; ; {
		if len(rest) < maxPageEnd {
			return a, fmt.Errorf("%w: it ends early", errPage)
		}
		if binary.BigEndian.Uint32(rest) == endOfPage {
			more := rest[wire.LengthSize]
			if len(rest) != maxPageEnd || more > 1 || more == 1 && a.n == 0 {
				return a, fmt.Errorf("%w: its end", errPage)
			}
			a.body, a.more = b[:len(b)-len(rest)], more == 1
			return a, nil
		}
		key, after, err := checkRecord(rest, q.keysOnly)
		if err != nil {
			return a, err
		}
		_, asked := slices.BinarySearch(q.partitions, s.r.handle.Partition(key))
		switch {
		case a.n > 0 && bytes.Compare(key, a.last) <= 0:
			return a, fmt.Errorf("%w: keys out of order", errPage)
		case a.n == 0 && bytes.Compare(key, q.start) < 0, q.end != nil && bytes.Compare(key, q.end) >= 0:
			return a, fmt.Errorf("%w: a key outside of the range", errPage)
		case !asked:
			return a, fmt.Errorf("%w: a key of another partition", errPage)
		}
		a.last, rest = key, after
		if a.n++; q.limit > 0 && a.n > q.limit {
			return a, fmt.Errorf("%w: more than %d records", errPage, q.limit)
		}
	}
}

// checkRecord checks the lengths of the first record of b, and returns its key and what follows it.
func checkRecord(b []byte, keysOnly bool) (key, rest []byte, err error) {
	errLength := fmt.Errorf("%w: it ends in a record, or a record is too long", errPage)
	key, b, ok := wire.CutFrame(b)
	if !ok || len(key) > maxBound-1 {
		return nil, nil, errLength
	}
	if keysOnly {
		return key, b, nil
	}
	if len(b) >= wire.LengthSize+hashSize {
		if n := binary.BigEndian.Uint32(b); n&largeBit != 0 && n&^largeBit > maxSmallValue {
			return key, b[wire.LengthSize+hashSize:], nil
		}
	}
	value, b, ok := wire.CutFrame(b)
	if !ok || len(value) > maxSmallValue {
		return nil, nil, errLength
	}
	return key, b, nil
}
