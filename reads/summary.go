package reads

import (
	"context"
	"encoding/binary"
	"fmt"

	"sequins/version"
)

// summary is of the records of a partition: those of equal summaries are equal. As an answer to other nodes it is both
// numbers, in 64 bits each in big-endian order, and the hash.
type summary struct {
	records, bytes int64 // of keys and values
	hash           string
}

// maxHash is the maximum length of a hash in bytes.
const maxHash = 64

// summarize returns the summary of a block. A block that was not read yet is opened.
func summarize(b version.Block) (summary, error) {
	if r, ok := b.(interface{ EnsureOpen() error }); ok {
		if err := r.EnsureOpen(); err != nil {
			return summary{}, err
		}
	}
	p := b.Properties()
	return summary{p.Records, p.RawBytes, p.ContentHash}, nil
}

// summary returns the summary of a partition, of this node or of another one. ok is false if none gives it.
func (r *Read) summary(ctx context.Context, partition int) (sum summary, ok bool) {
	s := r.another(ctx)
	if b := r.handle.Block(partition); b != nil {
		sum, err := summarize(b)
		if err == nil {
			return sum, true
		}
		s.report(partition, b, err)
	}
	if r.reader.opts.Proxy == nil {
		return sum, false
	}
	peers, err := s.holdersOf([]int{partition}, nil)
	if err != nil {
		return sum, false
	}
	q := s.query(&PageRequest{kind: pageSummary, partitions: []int{partition}}, peers, 1)
	_, err = s.fetch(q, nil, 16+maxHash, func(b []byte) (err error) {
		sum, err = parseSummary(b)
		return err
	})
	return sum, err == nil
}

func parseSummary(b []byte) (summary, error) {
	if len(b) < 16 {
		return summary{}, fmt.Errorf("%w: of a summary", errPage)
	}
	sum := summary{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:])), string(b[16:])}
	if sum.records < 0 || sum.bytes < 0 {
		return summary{}, fmt.Errorf("%w: the numbers of a summary", errPage)
	}
	return sum, nil
}

// summaryPage answers a request for the summary of a partition.
func (r *Read) summaryPage(ctx context.Context, p *PageRequest) ([]byte, Outcome) {
	if len(p.partitions) != 1 {
		return nil, NotLocal
	}
	b := r.handle.Block(p.partitions[0])
	if b == nil {
		return nil, NotLocal
	}
	sum, err := summarize(b)
	if err != nil {
		r.newScan(ctx, interval{}, true, 0).report(p.partitions[0], b, err)
		return nil, Unreadable
	}
	out := binary.BigEndian.AppendUint64(nil, uint64(sum.records))
	out = binary.BigEndian.AppendUint64(out, uint64(sum.bytes))
	return append(out, sum.hash...), Found
}
