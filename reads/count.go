package reads

import (
	"context"
	"slices"
)

// recordsPerTurn is the number of records that a count reads from each source before it reads from the next one.
const recordsPerTurn = 4096

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
	return s.count()
}

// count counts the records of all sources, each of which begin has moved to its first record. Their order does not matter, but
// they take turns, as other nodes keep a replaced version only while they are asked.
func (s *Scan) count() (int64, Outcome) {
	from := make([][]byte, len(s.m.Leaves)) // what is not counted of each
	for i := range s.m.Leaves {
		if l := &s.m.Leaves[i]; !l.Done {
			from[i] = successor(l.Key)
			s.records++
		}
	}
	for more := true; more; {
		more = false
		for i := 0; i < len(s.m.Leaves); i++ {
			if s.m.Leaves[i].Done {
				continue
			}
			src, n := s.m.Leaves[i].Source, 0
			for ; n < recordsPerTurn && src.next(); n++ {
				from[i] = append(append(from[i][:0], src.key()...), 0) // the successor
			}
			if s.records += int64(n); n == recordsPerTurn {
				more = true
				continue
			}
			s.m.Leaves[i].Done = true
			if o := s.replace(src, from[i]); o != Found {
				return 0, o
			}
			for len(from) < len(s.m.Leaves) {
				from, more = append(from, slices.Clone(from[i])), true
			}
		}
		if s.ctx.Err() != nil {
			return 0, GivenUp
		}
	}
	return s.records, Found
}

func (s *Scan) countAll() (total int64, o Outcome) {
	reported := make(map[int]int64)
	reports, _ := s.r.handle.Following.Reports()
	for _, report := range reports {
		for p, figures := range report.Blocks {
			reported[p] = figures.Records
		}
	}
	for p := range s.r.handle.Partitions {
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
