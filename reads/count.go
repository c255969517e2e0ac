package reads

import (
	"context"

	"sequins/version/gate"
)

// recordsPerCheck is the number of records after which a count looks whether it is still wanted.
const recordsPerCheck = 4096

// Count counts the records of a range; g.After, g.KeysOnly and g.Limit are not used. It returns Found, or the reason why
// there is no answer, as Scan does. Without a range, the numbers are those in the blocks' properties and in the reports of other nodes.
func (r *Read) Count(ctx context.Context, q *Query, g *Range) (total int64, o Outcome) {
	if o := r.open(q); o != Found {
		return 0, o
	}
	r.counts = r.db.counts.Scans
	s := r.newScan(ctx, g.interval(), true, 0)
	if q.Head {
		return 0, Found
	}
	if s.in.whole() {
		return s.countAll()
	}
	all := allPartitions(r.handle)
	if s.in.empty() {
		return 0, Found
	}
	bytes, span := r.readAhead(all)
	if !r.reader.reserveScan(s, bytes) {
		return 0, Busy
	}
	s.span = span
	if o = s.open(all, s.in.start, nil, 0); o == Found {
		o = s.count(0, s.in.start)
	}
	return s.records, o
}

// count counts the records of the leaves from i on, whose first is at start or behind it. It reads one after the other, as
// their order does not matter.
func (s *Scan) count(i int, start []byte) Outcome {
	var last []byte
	for end := len(s.m.Leaves); i < end; i++ {
		src, before := s.m.Leaves[i].Source, s.records
		for src.next() {
			last = append(last[:0], src.key()...)
			if s.records++; s.records%recordsPerCheck == 0 && s.ctx.Err() != nil {
				return GivenUp
			}
		}
		rest, added := start, len(s.m.Leaves)
		if s.records > before {
			rest = successor(last)
		}
		if o := s.replace(src, rest); o != Found {
			return o
		}
		if o := s.count(added, rest); o != Found {
			return o
		}
	}
	return Found
}

// countAll counts the records of the version.
func (s *Scan) countAll() (total int64, o Outcome) {
	reported := make(map[int]int64)
	for _, report := range gate.ParseReports(s.r.handle.Reports()) {
		for p, figures := range report.Blocks {
			reported[p] = figures.Records
		}
	}
	for p := range s.r.handle.Partitions() {
		n, known := reported[p]
		if !known || s.r.handle.Has(p) {
			sum, o := s.summary(p)
			if o != Found {
				return 0, o
			}
			n = sum.records
		}
		total += n
	}
	return total, Found
}
