package blocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"

	"sequins/blocks/internal/fsst"
)

// pageBuilder gathers the records of one page. They lie behind room for the head, which is put before them
// when they are all there: nothing is moved. What changes with every record are numbers, as the garbage
// collector would want to know of pointers.
type pageBuilder struct {
	buf          []byte
	fingerprints []byte
	ends         []byte // two bytes for each record
	room         int    // where the records begin in buf
	end          int    // of the records, from room on
	key, keyEnd  int    // where the last key lies in buf
	count        int
}

// newPageBuilder returns a builder for pages of size bytes, to which records are added only as long as
// size says that they fit; the first always does.
func newPageBuilder(size int) pageBuilder {
	most := max(1, size/4) // of the records, each of which takes four bytes or more
	return pageBuilder{
		buf: make([]byte, 3*most+size), fingerprints: make([]byte, most), ends: make([]byte, 2*most),
		room: 3 * most,
	}
}

// size is the length of the page on the disk, not packed, were a record of n bytes added.
func (p *pageBuilder) size(n int) int { return 3*(p.count+1) + p.end + n + trailerSize }

func (p *pageBuilder) empty() bool { return p.count == 0 }

// recordSize is the length of a record within a page.
func recordSize(key, value int) int {
	return (bits.Len64(uint64(key)|1)+6)/7 + key + value
}

func (p *pageBuilder) add(key, value []byte, hash uint64) {
	at := p.room + p.end
	if n := at + binary.MaxVarintLen32 + len(key) + len(value); n > len(p.buf) {
		p.buf = append(p.buf, make([]byte, n-len(p.buf))...)
	}
	b := p.buf[at:]
	head := 1
	if b[0] = byte(len(key)); len(key) >= 0x80 {
		head = binary.PutUvarint(b, uint64(len(key)))
	}
	copy(b[head:], key)
	copy(b[head+len(key):], value)
	p.key, p.keyEnd = at+head, at+head+len(key)
	p.end += head + len(key) + len(value)
	p.fingerprints[p.count] = fingerprint(hash)
	binary.LittleEndian.PutUint16(p.ends[2*p.count:], uint16(p.end))
	p.count++
}

// lastKey is the key of the last record, of which there is one, as it lies in the builder, until another
// is added.
func (p *pageBuilder) lastKey() []byte { return p.buf[p.key:p.keyEnd] }

// take returns the payload, which is valid until the next record is added, and empties the builder.
func (p *pageBuilder) take() []byte {
	start := p.room - 3*p.count
	head := binary.LittleEndian.AppendUint16(p.buf[start:start], uint16(p.count))
	head = append(head, p.fingerprints[:p.count]...)
	_ = append(head, p.ends[:2*p.count-2]...)
	payload := p.buf[start : p.room+p.end]
	p.count, p.end = 0, 0
	return payload
}

// fingerprint is the byte of a key's hash that stands in the page. The filter uses all 64 bits
// after mixing them with a seed, so the two err on different keys.
func fingerprint(hash uint64) byte { return byte(hash >> 24) }

var errPage = errors.New("records do not fit their page")

// page is a payload of n records. The zero page holds nothing.
type page struct {
	payload []byte
	n       int
	symbols *fsst.Table // nil if the records are not encoded
	s       *Scratch    // what records are decoded to
}

// isLarge says whether payload is that of a large value's page.
func isLarge(payload []byte) bool {
	return len(payload) >= 2 && payload[0] == 0 && payload[1] == 0
}

// parsePage checks that payload is as long as the head of its records says. If these are encoded by symbols, one at a time is
// decoded, to s.
func parsePage(payload []byte, symbols *fsst.Table, s *Scratch) (page, error) {
	if len(payload) < 3 {
		return page{}, errPage
	}
	p := page{payload, int(binary.LittleEndian.Uint16(payload)), symbols, s}
	if p.n == 0 || len(payload) < p.start() {
		return page{}, errPage
	}
	return p, nil
}

func (p page) len() int { return p.n }

// start is where the records begin.
func (p page) start() int { return 3 * p.n }

// bytes returns record i as it is in the page, 0 <= i < p.len(); nil where its ends do not fit the page. Both ends are loaded
// also where only one is stored, so that there is no branch to guess.
func (p page) bytes(i int) []byte {
	at := 2 + p.n + 2*i // of end[i]
	if at+2 > len(p.payload) {
		return p.short()
	}
	ends := p.payload[at-2 : at+2]
	start, end := int(binary.LittleEndian.Uint16(ends)), int(binary.LittleEndian.Uint16(ends[2:]))
	records := p.payload[p.start():]
	if i == 0 {
		start = 0
	}
	if i == p.n-1 {
		end = len(records)
	}
	if start >= end || end > len(records) {
		return nil
	}
	return records[start:end]
}

// short returns the only record that can be the last one and end before where its end would be.
func (p page) short() []byte {
	if p.n > 1 || p.start() == len(p.payload) {
		return nil
	}
	return p.payload[p.start():]
}

// record returns record i. If it is encoded, it is valid until the next one is asked for.
func (p page) record(i int) (key, value []byte, err error) {
	b := p.bytes(i)
	if p.symbols != nil {
		if p.s.value, err = p.symbols.Append(p.s.value[:0], b, maxRecord); err != nil {
			return nil, nil, err
		}
		b = p.s.value
	}
	return cutRecord(b)
}

// maxRecord is the length of the longest record of a page in bytes.
const maxRecord = binary.MaxVarintLen32 + MaxKey + LargeValue

func cutRecord(b []byte) (key, value []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errPage
	}
	k, n := uint64(b[0]), 1
	if k >= 0x80 {
		k, n = binary.Uvarint(b)
	}
	if n <= 0 || k > uint64(len(b)-n) {
		return nil, nil, errPage
	}
	b = b[n:]
	return b[:k:k], b[k:], nil
}

// find looks a key up among the records whose fingerprint is that of hash.
func (p page) find(key []byte, hash uint64) (value []byte, found bool, err error) {
	fingerprints := p.payload[2 : 2+p.n]
	for i := 0; ; i++ {
		n := bytes.IndexByte(fingerprints[i:], fingerprint(hash))
		if n < 0 {
			return nil, false, nil
		}
		i += n
		k, v, err := p.record(i)
		if err != nil {
			return nil, false, err
		}
		if string(k) == string(key) {
			return v, true, nil
		}
	}
}

// search returns the first record whose key is at least key.
func (p page) search(key []byte) (int, error) {
	lo, hi := 0, p.len()
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		k, _, err := p.record(mid)
		if err != nil {
			return 0, err
		}
		if bytes.Compare(k, key) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}
