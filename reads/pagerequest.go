package reads

import (
	"encoding/base64"
	"encoding/binary"
	"errors"

	"sequins/internal/wire"
)

// PageRequest is the request of another node for a part of an ordered read, in some partitions. It is the parameter
// page of GET /<db>?proxy=<version>&page=<text>.
type PageRequest struct {
	kind       pageKind
	keysOnly   bool
	partitions []int // ascending
	size       int   // the page ends at the first record behind it, in bytes
	limit      int64 // records; 0 for no limit
	interval         // for pageValue, start is the key
}

// pageKind is what the other node wants.
type pageKind uint8

const (
	pageRecords pageKind = iota // records in order, see appendPage
	pageSummary                 // that of one partition, see summary
	pageValue                   // one large value, as for GET /<db>/<key>
)

const (
	// maxPage is the largest PageRequest.size, in bytes, and minPage what a scan of many partitions asks for.
	maxPage = 1 << 20
	minPage = 16 << 10
	// firstPage is the size of a scan's first page from a node, in bytes. Each page may be twice as large as the one before
	// it: most ranges are short, and the less a page may have, the sooner another node is asked for it.
	firstPage = 16 << 10
	// maxPagePartitions limits the partitions of a request, so that it is accepted as a request target.
	maxPagePartitions = 4096
	// maxPartitions is the largest number of partitions of a version.
	maxPartitions = 1 << 16
	// maxLimit is the largest number of records.
	maxLimit = 1<<63 - 1
)

const pageFormat = 3

var errPageRequest = errors.New("malformed parameter page: it is for the nodes of this cluster, of the same release")

// Key returns the key of a request for a large value, and whether it is one.
func (p *PageRequest) Key() ([]byte, bool) { return p.start, p.kind == pageValue }

// encode returns the request as base64url: its format, kind, keysOnly, size and limit, the frame of the start, the end, and the
// partitions in 32 bits each.
func (p *PageRequest) encode() []byte {
	b := []byte{pageFormat, byte(p.kind), 0}
	if p.keysOnly {
		b[2] = 1
	}
	b = binary.BigEndian.AppendUint32(b, uint32(p.size))
	b = binary.BigEndian.AppendUint64(b, uint64(p.limit))
	b = appendEnd(wire.AppendFrame(b, p.start), p.end)
	for _, n := range p.partitions {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return base64.RawURLEncoding.AppendEncode(nil, b)
}

// pageRequestHead is the length of what comes before the range, in bytes.
const pageRequestHead = 3 + 4 + 8

// ParsePageRequest decodes the value of the parameter page.
func ParsePageRequest(text []byte) (*PageRequest, error) {
	b, err := decodeText(text)
	if err != nil || len(b) < pageRequestHead || b[0] != pageFormat || b[1] > byte(pageValue) || b[2] > 1 {
		return nil, errPageRequest
	}
	size, limit := binary.BigEndian.Uint32(b[3:]), binary.BigEndian.Uint64(b[7:])
	start, rest, ok := wire.CutFrame(b[pageRequestHead:])
	if !ok || len(start) > maxBound || size > maxPage || limit > maxLimit {
		return nil, errPageRequest
	}
	end, rest, ok := cutEnd(rest)
	if !ok || len(rest)%4 != 0 || len(rest)/4 > maxPagePartitions {
		return nil, errPageRequest
	}
	p := &PageRequest{kind: pageKind(b[1]), keysOnly: b[2] == 1, size: int(size), limit: int64(limit), interval: interval{start, end}}
	before := -1
	for ; len(rest) > 0; rest = rest[4:] {
		n := int(binary.BigEndian.Uint32(rest))
		if n <= before || n >= maxPartitions {
			return nil, errPageRequest
		}
		p.partitions, before = append(p.partitions, n), n
	}
	return p, nil
}
