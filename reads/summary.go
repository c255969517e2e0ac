package reads

import (
	"encoding/binary"
	"fmt"
	"math"

	"sequins/version"
)

// summary is the number of records of a partition, and the hash of them: two partitions with the same hash have the same records. As
// an answer to other nodes it is the number, in 64 bits in big-endian order, and the hash.
type summary struct {
	records int64
	hash    string // "" if unknown
}

// maxHash is the maximum length of a hash in bytes.
const maxHash = 64

func summaryOf(b version.Block) summary {
	p := b.Properties()
	return summary{p.Records, p.ContentHash}
}

func (sum summary) encode() []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(sum.records)), sum.hash...)
}

func (s *Scan) summary(partition int) (sum summary, o Outcome) {
	if b := s.r.handle.Block(partition); b != nil {
		return summaryOf(b), Found
	}
	if s.r.reader.opts.Proxy == nil {
		return sum, Unreadable
	}
	q, peers := &PageRequest{kind: pageSummary, partitions: []int{partition}}, s.r.peers(partition)
	_, err := s.fetch(s.r.pageQuery(q, peers, 1, s.fields), nil, 8+maxHash, func(b []byte) error {
		if len(b) < 8 || binary.BigEndian.Uint64(b) > math.MaxInt64/maxPartitions {
			return fmt.Errorf("%w: of a summary", errPage)
		}
		sum = summary{int64(binary.BigEndian.Uint64(b)), string(b[8:])}
		return nil
	})
	if err != nil {
		return sum, s.r.fetchError(peers, err)
	}
	return sum, Found
}
