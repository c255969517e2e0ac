package reads

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"sequins/version"
)

// summary is of the records of a partition that are in a range. Of a whole partition, those of equal summaries are equal; of
// another range there is only their number. As an answer to other nodes it is both numbers, in 64 bits each in big-endian
// order, and the hash.
type summary struct {
	records, bytes int64 // of keys and values
	hash           string
}

// maxHash is the maximum length of a hash in bytes.
const maxHash = 64

// summarize returns the summary of a block for the range of the scan.
func (s *Scan) summarize(b version.Block) (summary, error) {
	if !s.in.whole() {
		n, err := s.countLocal(b)
		return summary{records: n}, err
	}
	p := b.Properties()
	return summary{p.Records, p.RawBytes, p.ContentHash}, nil
}

// summary returns the summary of a whole partition, of this node or of another one. ok is false if none gives it.
func (r *Read) summary(ctx context.Context, partition int) (sum summary, ok bool) {
	s := r.another(ctx)
	if b := r.handle.Block(partition); b != nil {
		sum, err := s.summarize(b)
		if err == nil {
			return sum, true
		}
		s.report(partition, b, err)
	}
	sum, o := s.askSummary(partition, 1)
	return sum, o == Found
}

// askSummary asks other nodes for the summary of a partition.
func (s *Scan) askSummary(partition, scale int) (sum summary, o Outcome) {
	if s.r.reader.opts.Proxy == nil {
		return sum, Unreadable
	}
	q := &PageRequest{kind: pageSummary, partitions: []int{partition}, start: s.in.start, end: s.in.end}
	peers, err := s.holdersOf(q.partitions, nil)
	if err == nil {
		_, err = s.fetch(s.query(q, peers, scale), nil, 16+maxHash, func(b []byte) (err error) {
			sum, err = parseSummary(b)
			return err
		})
	}
	switch {
	case err == nil:
		return sum, Found
	case s.lost[partition]:
		return sum, Unreadable
	}
	return sum, s.r.fetchError(peers, err)
}

func parseSummary(b []byte) (summary, error) {
	if len(b) < 16 {
		return summary{}, fmt.Errorf("%w: of a summary", errPage)
	}
	sum := summary{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:])), string(b[16:])}
	if sum.records < 0 || sum.records > math.MaxInt64/maxPartitions || sum.bytes < 0 {
		return summary{}, fmt.Errorf("%w: the numbers of a summary", errPage)
	}
	return sum, nil
}

// summaryPage answers a request for the summary of a partition.
func (r *Read) summaryPage(ctx context.Context, in interval, p *PageRequest) ([]byte, Outcome) {
	if len(p.partitions) != 1 {
		return nil, NotLocal
	}
	b := r.handle.Block(p.partitions[0])
	if b == nil {
		return nil, NotLocal
	}
	s := r.newScan(ctx, in, true, 0)
	if !in.whole() && !r.reader.reserveScan(s, 2*maxSpan) {
		return nil, Busy
	}
	sum, err := s.summarize(b)
	switch {
	case s.ctx.Err() != nil:
		return nil, GivenUp
	case err != nil:
		s.report(p.partitions[0], b, err)
		return nil, Unreadable
	}
	out := binary.BigEndian.AppendUint64(nil, uint64(sum.records))
	out = binary.BigEndian.AppendUint64(out, uint64(sum.bytes))
	return append(out, sum.hash...), Found
}
