package blocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

// pageBuilder gathers the records of one page.
type pageBuilder struct {
	fingerprints []byte
	ends         []byte // two bytes for each record but the last
	records      []byte
}

// size is the length of the page on the disk, not packed, were a record of n bytes added.
func (p *pageBuilder) size(n int) int {
	count := len(p.fingerprints) + 1
	return 2 + count + 2*(count-1) + len(p.records) + n + trailerSize
}

func (p *pageBuilder) empty() bool { return len(p.fingerprints) == 0 }

// recordSize is the length of a record within a page.
func recordSize(key, value int) int {
	return (bits.Len64(uint64(key)|1)+6)/7 + key + value
}

// add appends a record and returns its key as it lies in the builder, until another page is begun.
func (p *pageBuilder) add(key, value []byte, hash uint64) []byte {
	if !p.empty() {
		p.ends = binary.LittleEndian.AppendUint16(p.ends, uint16(len(p.records)))
	}
	p.fingerprints = append(p.fingerprints, fingerprint(hash))
	p.records = binary.AppendUvarint(p.records, uint64(len(key)))
	at := len(p.records)
	p.records = append(append(p.records, key...), value...)
	return p.records[at : at+len(key)]
}

// dropLast removes the last record, of which there is one, and returns how long its key and value were.
func (p *pageBuilder) dropLast() int {
	n := len(p.fingerprints) - 1
	start := 0
	if n > 0 {
		start = int(binary.LittleEndian.Uint16(p.ends[2*n-2:]))
		p.ends = p.ends[:2*n-2]
	}
	_, head := binary.Uvarint(p.records[start:])
	length := len(p.records) - start - head
	p.fingerprints, p.records = p.fingerprints[:n], p.records[:start]
	return length
}

// lastKey is the key of the last record, nil if there is none.
func (p *pageBuilder) lastKey() []byte {
	if p.empty() {
		return nil
	}
	last := p.records
	if n := len(p.ends); n > 0 {
		last = last[binary.LittleEndian.Uint16(p.ends[n-2:]):]
	}
	length, head := binary.Uvarint(last)
	return last[head : head+int(length)]
}

// length is that of the payload.
func (p *pageBuilder) length() int { return 2 + len(p.fingerprints) + len(p.ends) + len(p.records) }

// appendTo appends the payload to dst and empties the builder.
func (p *pageBuilder) appendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(p.fingerprints)))
	dst = append(append(append(dst, p.fingerprints...), p.ends...), p.records...)
	p.fingerprints, p.ends, p.records = p.fingerprints[:0], p.ends[:0], p.records[:0]
	return dst
}

// fingerprint is the byte of a key's hash that stands in the page. The filter uses all 64 bits
// after mixing them with a seed, so the two err on different keys.
func fingerprint(hash uint64) byte { return byte(hash >> 24) }

var errPage = errors.New("records do not fit their page")

// page is a payload cut into its parts. The zero page holds nothing.
type page struct {
	fingerprints []byte
	ends         []byte
	records      []byte
}

// isLarge says whether payload is that of a large value's page.
func isLarge(payload []byte) bool {
	return len(payload) >= 2 && payload[0] == 0 && payload[1] == 0
}

// parsePage cuts a payload of n >= 1 records into its parts.
func parsePage(payload []byte) (page, error) {
	if len(payload) < 3 {
		return page{}, errPage
	}
	n := int(binary.LittleEndian.Uint16(payload))
	head := 2 + n + 2*(n-1)
	if n == 0 || len(payload) < head {
		return page{}, errPage
	}
	return page{payload[2 : 2+n], payload[2+n : head], payload[head:]}, nil
}

func (p *page) len() int { return len(p.fingerprints) }

// record returns the key and value of record i, 0 <= i < p.len().
func (p *page) record(i int) (key, value []byte, err error) {
	start, end := 0, len(p.records)
	if i > 0 {
		start = int(binary.LittleEndian.Uint16(p.ends[2*i-2:]))
	}
	if i < len(p.fingerprints)-1 {
		end = int(binary.LittleEndian.Uint16(p.ends[2*i:]))
	}
	if start >= end || end > len(p.records) {
		return nil, nil, errPage
	}
	b := p.records[start:end]
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
func (p *page) find(key []byte, hash uint64) (value []byte, found bool, err error) {
	return p.findFrom(key, hash, p.candidate(hash, 0))
}

// findFrom is find once the first candidate, i, is known.
func (p *page) findFrom(key []byte, hash uint64, i int) (value []byte, found bool, err error) {
	for ; i >= 0; i = p.candidate(hash, i+1) {
		k, v, err := p.record(i)
		if err != nil {
			return nil, false, err
		}
		if bytes.Equal(k, key) {
			return v, true, nil
		}
	}
	return nil, false, nil
}

// candidate returns the first record from i on whose fingerprint is that of hash, -1 if there is
// none. It compares eight fingerprints at a time.
func (p *page) candidate(hash uint64, i int) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	f := p.fingerprints
	pattern := uint64(fingerprint(hash)) * low
	for ; i < len(f); i += 8 {
		var x uint64
		if i+8 <= len(f) {
			x = binary.LittleEndian.Uint64(f[i:]) ^ pattern
		} else {
			x = lastWord(f[i:], ^pattern) ^ pattern
		}
		// The lowest high bit that is left marks the first byte that is zero in x.
		if m := (x - low) &^ x & high; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	return -1
}

// firstByte is the first byte of record i, 0 if there is none.
func (p *page) firstByte(i int) byte {
	start := 0
	if i > 0 {
		start = int(binary.LittleEndian.Uint16(p.ends[2*i-2:]))
	}
	if i < 0 || start >= len(p.records) {
		return 0
	}
	return p.records[start]
}

// lastWord loads fewer than eight fingerprints, filled up from pad.
func lastWord(f []byte, pad uint64) uint64 {
	w := pad
	for i, b := range f {
		w = w&^(0xff<<(8*i)) | uint64(b)<<(8*i)
	}
	return w
}

// search returns the first record whose key is at least key.
func (p *page) search(key []byte) (int, error) {
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
