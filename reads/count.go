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
	if o := s.begin(allPartitions(r.handle)); o != Found {
		return 0, o
	}
	for s.Next() {
		if s.records%recordsPerCheck == 0 && s.ctx.Err() != nil {
			return 0, GivenUp
		}
	}
	return s.records, s.outcome
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
