package reads

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
)

// PageRequest is the request of another node for a part of an ordered read, in some partitions. It is the parameter
// page of GET /<db>?proxy=<version>&page=<text>.
type PageRequest struct {
	kind       pageKind
	keysOnly   bool
	partitions []int  // ascending
	size       int    // the page ends at the first record behind it, in bytes
	limit      int64  // records; 0 for no limit
	start, end []byte // the range, as interval; for pageValue start is the key
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

var errPageRequest = errors.New("malformed parameter page: it is for the nodes of this cluster, of the same release")

// Key returns the key of a request for a large value, and whether it is one.
func (p *PageRequest) Key() ([]byte, bool) { return p.start, p.kind == pageValue }

func (p *PageRequest) encode() []byte {
	b := []byte{cursorFormat, byte(p.kind), 0}
	if p.keysOnly {
		b[2] = 1
	}
	b = binary.AppendUvarint(b, uint64(p.size))
	b = binary.AppendUvarint(b, uint64(p.limit))
	b = appendField(b, p.start)
	b = appendEnd(b, p.end)
	b = binary.AppendUvarint(b, uint64(len(p.partitions)))
	before := -1
	for _, n := range p.partitions {
		b = binary.AppendUvarint(b, uint64(n-before-1))
		before = n
	}
	return base64.RawURLEncoding.AppendEncode(nil, b)
}

// ParsePageRequest decodes the value of the parameter page.
func ParsePageRequest(text []byte) (*PageRequest, error) {
	b, err := decodeText(text)
	if err != nil || len(b) < 3 || b[0] != cursorFormat || b[1] > byte(pageValue) || b[2] > 1 {
		return nil, errPageRequest
	}
	p := &PageRequest{kind: pageKind(b[1]), keysOnly: b[2] == 1}
	f := fields{b: b[3:]}
	p.size = int(f.uvarint(maxPage))
	p.limit = int64(f.uvarint(maxLimit))
	p.start = f.bytes(maxBound)
	p.end = f.end()
	before := -1
	for range f.uvarint(maxPagePartitions) {
		before += 1 + int(f.uvarint(maxPartitions))
		if f.failed || before >= maxPartitions {
			return nil, errPageRequest
		}
		p.partitions = append(p.partitions, before)
	}
	if !f.finished() {
		return nil, errPageRequest
	}
	return p, nil
}
