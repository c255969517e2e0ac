package reads

import (
	"bytes"
	"encoding/binary"
)

// source gives the records of some partitions in ascending order of their keys. Key and value are valid until next.
type source interface {
	// next moves to the next record. It returns false at the end and after an error, see Scan.replace.
	next() bool
	key() []byte
	value() scanned
	// partitions are those that the source has the records of.
	partitions() []int
}

// merger merges sources with a tournament tree: each inner node has the loser of the match below it, so that a new
// record of the winner takes one comparison on each level.
type merger struct {
	leaves []leaf
	losers []int32 // losers[0] is the winner, losers[1:] the inner nodes; the children of i are 2i and 2i+1
}

// leaf is a source and its current record.
type leaf struct {
	src  source
	key  []byte
	head uint64 // the first eight bytes of the key, compared first
	done bool
}

// set sets the key of the current record.
func (l *leaf) set(key []byte) {
	l.key = key
	if len(key) >= 8 {
		l.head = binary.BigEndian.Uint64(key)
		return
	}
	var b [8]byte
	copy(b[:], key)
	l.head = binary.BigEndian.Uint64(b[:])
}

// less reports whether the record of leaf i comes before that of leaf j.
func (m *merger) less(i, j int32) bool {
	a, b := &m.leaves[i], &m.leaves[j]
	switch {
	case a.done || b.done:
		return !a.done
	case a.head != b.head:
		return a.head < b.head
	}
	return bytes.Compare(a.key, b.key) < 0
}

// build plays all matches.
func (m *merger) build() {
	n := len(m.leaves)
	m.losers = make([]int32, max(n, 1))
	winners := make([]int32, 2*n)
	for i := range n {
		winners[n+i] = int32(i)
	}
	for i := n - 1; i > 0; i-- {
		a, b := winners[2*i], winners[2*i+1]
		if m.less(b, a) {
			a, b = b, a
		}
		winners[i], m.losers[i] = a, b
	}
	if n > 1 {
		m.losers[0] = winners[1]
	}
}

// replay plays the matches of leaf i, the winner, after its record has changed.
func (m *merger) replay(i int32) {
	for node := (int(i) + len(m.leaves)) / 2; node > 0; node /= 2 {
		if m.less(m.losers[node], i) {
			i, m.losers[node] = m.losers[node], i
		}
	}
	m.losers[0] = i
}

// winner returns the leaf with the least key, or nil if all are done.
func (m *merger) winner() *leaf {
	if len(m.leaves) == 0 {
		return nil
	}
	if l := &m.leaves[m.losers[0]]; !l.done {
		return l
	}
	return nil
}
