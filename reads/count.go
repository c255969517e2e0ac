package reads

import (
	"context"

	"sequins/version"
	"sequins/version/gate"
)

const (
	// recordsPerCheck is the number of records after which a local count looks whether it is still wanted.
	recordsPerCheck = 4096
	// recordsPerScale and bytesPerScale are those of a partition for which another node gets as much time as for a single key.
	recordsPerScale = 8 << 10
	bytesPerScale   = 8 << 20
)

// Count counts the records of a range; g.After, g.KeysOnly and g.Limit are not used. It returns Found, or the reason why
// there is no answer, as Scan does. Without a range, the numbers are those in the blocks' properties and in the reports of other nodes.
func (r *Read) Count(ctx context.Context, q *Query, g *Range) (total int64, o Outcome) {
	if o := r.open(q); o != Found {
		return 0, o
	}
	r.counts = r.db.counts.Scans
	s := r.newScan(ctx, g.interval(), true, 0)
	if q.Head || s.in.empty() {
		return 0, Found
	}
	if !s.in.whole() && !r.reader.reserveScan(s, 2*maxSpan) {
		return 0, Busy
	}
	reported := make(map[int]gate.Figures)
	for _, b := range reportedBlocks(r.handle) {
		reported[b.Partition] = b.Figures
	}
	for p := range r.handle.Partitions() {
		f, known := reported[p]
		if !known {
			f.Records = 1 << 20 // not known: a guess, from which the timeout follows
		}
		n, o := s.countPartition(p, f, known)
		if o != Found {
			return 0, o
		}
		total += n
	}
	return total, Found
}

// countPartition counts the records of a partition, of which other nodes have reported f if known is set.
func (s *Scan) countPartition(partition int, f gate.Figures, known bool) (int64, Outcome) {
	if b := s.r.handle.Block(partition); b != nil {
		sum, err := s.summarize(b)
		switch {
		case s.ctx.Err() != nil:
			return 0, GivenUp
		case err == nil:
			return sum.records, Found
		}
		s.report(partition, b, err)
	} else if known && s.in.whole() {
		return f.Records, Found
	}
	sum, o := s.askSummary(partition, int(1+f.Records/recordsPerScale+f.Bytes/bytesPerScale))
	return sum.records, o
}

// countLocal counts the records of a block. It ends early with the context of the scan.
func (s *Scan) countLocal(b version.Block) (n int64, err error) {
	it := b.IterWithin(s.in.start, s.in.end, maxSpan)
	for it.Next() {
		if n++; n%recordsPerCheck == 0 && s.ctx.Err() != nil {
			return n, s.ctx.Err()
		}
	}
	return n, it.Err()
}
