package fsst

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
)

// symbol is a string of one to eight bytes, the first one lowest.
type symbol struct {
	bytes  uint64
	length int
}

// candidate is a symbol, and about how many bytes of the sample it would stand for.
type candidate struct {
	symbol
	gain int
}

const (
	// rounds is how often Train encodes the sample: each time symbols can become twice as long.
	rounds = 5

	// minCount is how often two symbols must follow each other to become one.
	minCount = 3
)

// trainer counts what one table makes of a sample. A byte that is escaped counts as a symbol: 256 and the byte.
type trainer struct {
	single     [512]uint16
	pairs      [512][512]uint16
	frequent   [][2]int // pairs that were seen minCount times
	candidates []candidate
	padded     []byte
}

var trainers = sync.Pool{New: func() any { return new(trainer) }}

// Train returns an encoder with symbols for strings like those of sample, which should have some 16 KiB, and 32 at most. The
// same sample gives the same symbols. It takes a millisecond or two.
func Train(sample [][]byte) *Encoder {
	t := trainers.Get().(*trainer)
	defer trainers.Put(t)
	e := new(Encoder)
	e.reset()
	e.padding = [maxLength]byte(slices.Repeat([]byte{rarest(sample)}, maxLength))
	for round := range rounds {
		t.count(e, sample[:len(sample)*(round+1)/rounds])
		t.choose(e)
	}
	return e
}

// rarest returns the byte that occurs least often in sample.
func rarest(sample [][]byte) byte {
	var counts [256]int
	for _, s := range sample {
		for _, b := range s {
			counts[b]++
		}
	}
	return byte(slices.Index(counts[:], slices.Min(counts[:])))
}

// count encodes the sample and counts the symbols, and which follow each other.
func (t *trainer) count(e *Encoder, sample [][]byte) {
	clear(t.single[:])
	clear(t.pairs[:])
	t.frequent = t.frequent[:0]
	for _, s := range sample {
		t.padded = append(append(t.padded[:0], s...), e.padding[:]...)
		last := -1
		for s := t.padded; len(s) > maxLength; {
			m := e.find(binary.LittleEndian.Uint64(s))
			code := int(byte(m))
			if m == escaped {
				code = 256 + int(s[0])
			}
			t.see(last, code)
			if m.length() > 1 { // its first byte may be better
				t.see(last, 256+int(s[0]))
			}
			last = code
			s = s[m.length():]
		}
	}
}

func (t *trainer) see(last, code int) {
	t.single[code]++
	if last < 0 {
		return
	}
	if t.pairs[last][code]++; t.pairs[last][code] == minCount {
		t.frequent = append(t.frequent, [2]int{last, code})
	}
}

// choose makes the table of e anew from what was counted.
func (t *trainer) choose(e *Encoder) {
	t.candidates = t.candidates[:0]
	padding := symbol{uint64(e.padding[0]), 1}
	for code, n := range t.single {
		if n > 0 {
			t.propose(e.symbol(code), int(n))
		}
	}
	for _, pair := range t.frequent {
		first, second := e.symbol(pair[0]), e.symbol(pair[1])
		if first.length < maxLength && first != padding && second != padding {
			t.propose(join(first, second), int(t.pairs[pair[0]][pair[1]]))
		}
	}
	t.merge()
	e.reset()
	for _, c := range t.candidates {
		e.add(c.symbol)
	}
}

// symbol is the symbol that was counted as code.
func (e *Encoder) symbol(code int) symbol {
	if code >= 256 {
		return symbol{uint64(code - 256), 1}
	}
	return symbol{e.symbols[code], int(e.lengths[code])}
}

// join returns the first eight bytes of two symbols.
func join(a, b symbol) symbol {
	n := min(a.length+b.length, maxLength)
	return symbol{(a.bytes | b.bytes<<(8*a.length)) & (^uint64(0) >> (64 - 8*n)), n}
}

// propose adds a candidate that was seen n times. A single byte saves an escape, and decoding is faster without escapes.
func (t *trainer) propose(s symbol, n int) {
	gain := n * s.length
	if s.length == 1 {
		gain *= 4
	}
	t.candidates = append(t.candidates, candidate{s, gain})
}

// merge adds the gains of equal candidates, and puts the candidates in the order of their gains.
func (t *trainer) merge() {
	slices.SortFunc(t.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.length, b.length))
	})
	n := 0
	for _, c := range t.candidates {
		if n > 0 && t.candidates[n-1].symbol == c.symbol {
			t.candidates[n-1].gain += c.gain
			continue
		}
		t.candidates[n] = c
		n++
	}
	t.candidates = t.candidates[:n]
	slices.SortStableFunc(t.candidates, func(a, b candidate) int { return cmp.Compare(b.gain, a.gain) })
}
