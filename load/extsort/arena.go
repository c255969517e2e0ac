package extsort

import (
	"encoding/binary"
	"unsafe"
)

// arena is the memory of a [Sorter]: records, as they lie in runs, from its beginning upwards, and
// an entry for each from its end downwards, until the two meet. So any mixture of long and short
// records fills it, and adding a record allocates nothing.
//
//	record = keyLength:uvarint valueLength*2+deleted:uvarint key value
type arena struct {
	mem  []byte
	used int // length of the records
	n    int // entries

	touched byte // see touch
}

// entry stands for a record while records are sorted.
type entry struct {
	prefix uint64 // eight bytes of the key, big-endian, filled up with zeros
	off    uint64 // of the record in the arena; the later was added later
}

const (
	entrySize = int(unsafe.Sizeof(entry{}))

	// maxRecordHead is the length of the two numbers at the beginning of a record.
	maxRecordHead = 3 + 5
)

// appendHead appends the beginning of a record, up to the key.
func appendHead(dst []byte, keyLen, valueLen int, deleted bool) []byte {
	v := uint64(valueLen) << 1
	if deleted {
		v |= 1
	}
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(keyLen)), v)
}

// recordHead is what the beginning of a record says.
type recordHead struct {
	head     int // length of what comes before the key
	keyLen   int
	valueLen int
	deleted  bool
}

func (r recordHead) value() int { return r.head + r.keyLen }

func (r recordHead) size() int { return r.head + r.keyLen + r.valueLen }

// parseHead reads the beginning of the record at the start of b. It does not look whether key and
// value are there.
func parseHead(b []byte) (r recordHead, ok bool) {
	if len(b) < 2 {
		return r, false
	}
	keyLen, n := uint64(b[0]), 1
	if keyLen >= 0x80 {
		if keyLen, n = binary.Uvarint(b); n <= 0 || keyLen > MaxKey || n == len(b) {
			return r, false
		}
	}
	v, m := uint64(b[n]), 1
	if v >= 0x80 {
		if v, m = binary.Uvarint(b[n:]); m <= 0 || v>>1 > MaxValue {
			return r, false
		}
	}
	return recordHead{head: n + m, keyLen: int(keyLen), valueLen: int(v >> 1), deleted: v&1 != 0}, true
}

// fits says whether there is room for one more record of this size.
func (a *arena) fits(size int) bool { return size <= len(a.mem)-a.used-(a.n+1)*entrySize }

// add puts a record in, for which there must be room.
func (a *arena) add(key, value []byte, deleted bool) {
	b := appendHead(a.mem[a.used:a.used], len(key), len(value), deleted)
	b = append(append(b, key...), value...)
	a.n++
	e := (*entry)(unsafe.Pointer(&a.mem[len(a.mem)-a.n*entrySize]))
	*e = entry{prefix: prefix(key), off: uint64(a.used)}
	a.used += len(b)
}

// entries returns the entries where they lie in the arena, the last first.
func (a *arena) entries() []entry {
	if a.n == 0 {
		return nil
	}
	return unsafe.Slice((*entry)(unsafe.Pointer(&a.mem[len(a.mem)-a.n*entrySize])), a.n)
}

func (a *arena) key(e entry) []byte {
	b := a.mem[e.off:a.used]
	r, _ := parseHead(b) // which add has written
	return b[r.head:r.value()]
}

// prefix returns the first eight bytes of b, as a number that compares like them. A shorter b is
// filled up with zeros, so equal prefixes do not make b equal.
func prefix(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var p uint64
	for i, c := range b {
		p |= uint64(c) << (56 - 8*i)
	}
	return p
}

// touchAhead is for how many records touch is called at once.
const touchAhead = 64

// touch reads a little of each record. After sorting they lie in random order, so nearly each is a
// cache miss; in a loop as short as this the processor waits for several at once, which makes
// going through the arena a third faster.
func (a *arena) touch(entries []entry) {
	for _, e := range entries {
		b := a.mem[e.off:a.used]
		a.touched += b[0] + b[min(64, len(b)-1)]
	}
}
