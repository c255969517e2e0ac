package fsst

import (
	"slices"
	"unsafe"
)

// Encoder encodes strings by the symbols of its table. It is for one goroutine.
type Encoder struct {
	pieces  []piece
	in, out []byte

	Table

	// two has, for the two bytes that come next, the longest symbol of one or two bytes.
	two [1 << 16]match
	// long has symbols of three bytes and more by a hash of three. Of those with the same hash only the first is in
	// the table at all, so that one look is enough.
	long [1 << longBits]longSymbol
	// padding is a byte that no symbol of several bytes contains, eight times. It stands behind everything that is
	// encoded, so that no symbol is found that reaches beyond the end.
	padding [maxLength]byte
}

// match is a code in the low byte, the length of its symbol in the next, and above them how many bytes it takes: two
// with an escaped byte.
type match uint32

const escaped match = 2<<16 | 1<<8 | escape

func newMatch(code, length int) match { return match(1<<16 | length<<8 | code) }

func (m match) length() int { return int(byte(m >> 8)) }

type longSymbol struct {
	mask  uint64 // of its length
	bytes uint64
	match match
}

// noSymbol is equal to no word.
var noSymbol = longSymbol{bytes: 1}

const longBits = 10

func longHash(word uint64) uint64 { return word << 40 * 0x9e3779b97f4a7c15 >> (64 - longBits) }

// reset removes all symbols.
func (e *Encoder) reset() {
	e.Table = Table{}
	for i := range e.two {
		e.two[i] = escaped
	}
	for i := range e.long {
		e.long[i] = noSymbol
	}
}

// add gives a symbol the next code. It does nothing if all codes are taken, or if another symbol is at its place in long.
func (e *Encoder) add(s symbol) {
	if e.count == maxSymbols {
		return
	}
	m := newMatch(e.count, s.length)
	switch s.length {
	case 1:
		for second := range 256 {
			if at := &e.two[second<<8|int(s.bytes)]; at.length() == 1 {
				*at = m
			}
		}
	case 2:
		e.two[s.bytes] = m
	default:
		at := &e.long[longHash(s.bytes)]
		if *at != noSymbol {
			return
		}
		*at = longSymbol{^uint64(0) >> (64 - 8*s.length), s.bytes, m}
	}
	e.symbols[e.count], e.lengths[e.count] = s.bytes, uint8(s.length)
	e.count++
}

// find returns the longest symbol that word begins with.
func (e *Encoder) find(word uint64) match {
	m, long := e.two[uint16(word)], &e.long[longHash(word)]
	if longer := long.match; word&long.mask == long.bytes { // loaded in any case: there is no branch to guess
		m = longer
	}
	return m
}

// piece is a part of a string that is encoded by itself.
type piece struct {
	in, end int // what is left of it, in Encoder.in
	out     int // where its next code goes, in Encoder.out
	source  int // where it ends in what AppendAll was given
}

const (
	// lanes is how many pieces are encoded in turns: each code has to wait for the length of the one before.
	lanes = 4

	// pieceSize is the length of the longest piece.
	pieceSize = 512
)

// AppendAll appends strings encoded, each by itself: they lie in data one behind the other and end where ends says. It
// sets ends to where they end in what is appended, which is up to twice as long.
func (e *Encoder) AppendAll(dst, data []byte, ends []int) []byte {
	e.cut(data, ends)
	if len(e.pieces) >= lanes {
		e.encodeInTurns()
	}
	for i := range e.pieces {
		for p := &e.pieces[i]; p.in < p.end; {
			e.step(p, unsafe.Pointer(unsafe.SliceData(e.in)), unsafe.Pointer(unsafe.SliceData(e.out)))
		}
	}
	start, begin, n := len(dst), 0, 0
	for i, end := range ends {
		for ; n < len(e.pieces) && e.pieces[n].source <= end; n++ {
			dst = append(dst, e.out[2*begin:e.pieces[n].out]...)
			begin = e.pieces[n].source
		}
		ends[i] = len(dst) - start
	}
	return dst
}

// cut cuts strings into pieces, each with its padding, and makes room for what becomes of them.
func (e *Encoder) cut(data []byte, ends []int) {
	e.pieces, e.in = e.pieces[:0], e.in[:0]
	e.out = slices.Grow(e.out[:0], 2*len(data)+1)[:2*len(data)+1]
	begin := 0
	for _, end := range ends {
		for begin < end {
			next := min(end, begin+pieceSize)
			in := len(e.in)
			e.in = append(e.in, data[begin:next]...)
			e.pieces = append(e.pieces, piece{in, len(e.in), 2 * begin, next})
			e.in = append(e.in, e.padding[:]...)
			begin = next
		}
	}
}

// encodeInTurns encodes pieces, of which there are as many as lanes or more, until one has ended and no other waits for its
// turns.
func (e *Encoder) encodeInTurns() {
	in, out := unsafe.Pointer(unsafe.SliceData(e.in)), unsafe.Pointer(unsafe.SliceData(e.out))
	a, b, c, d := &e.pieces[0], &e.pieces[1], &e.pieces[2], &e.pieces[3]
	for waiting := e.pieces[lanes:]; ; waiting = waiting[1:] {
		for (a.in-a.end)&(b.in-b.end)&(c.in-c.end)&(d.in-d.end) < 0 {
			e.step(a, in, out)
			e.step(b, in, out)
			e.step(c, in, out)
			e.step(d, in, out)
		}
		if len(waiting) == 0 {
			return
		}
		switch next := &waiting[0]; {
		case a.in >= a.end:
			a = next
		case b.in >= b.end:
			b = next
		case c.in >= c.end:
			c = next
		default:
			d = next
		}
	}
}

// step encodes the next symbol of a piece. It repeats find, as the compiler puts it where it is called only if it is no larger than this.
func (e *Encoder) step(p *piece, in, out unsafe.Pointer) {
	word := *(*uint64)(unsafe.Add(in, p.in))
	m, long := e.two[uint16(word)], &e.long[longHash(word)]
	if longer := long.match; word&long.mask == long.bytes {
		m = longer
	}
	*(*[2]byte)(unsafe.Add(out, p.out)) = [2]byte{byte(m), byte(word)}
	p.out += int(m >> 16)
	p.in += int(byte(m >> 8))
}
