// Package merge owns the order of records that come from several sources: a tournament tree of their current records.
//
// A record passes through in three steps: its source is moved to it and Leaf.Set tells its key, Tree.Build or Tree.Replay
// plays its matches, and Tree.Winner returns it when its key is the least.
package merge

import (
	"bytes"
	"encoding/binary"
)

// Tree is a tournament tree: each inner node has the loser of the match below it, so that a new record of the winner takes
// one comparison on each level. The zero Tree has no leaves. After Leaves has been appended to, Build must be called.
type Tree[S any] struct {
	Leaves []Leaf[S]
	losers []int32 // losers[0] is the winner, losers[1:] the inner nodes; the children of i are 2i and 2i+1
}

// Leaf is a source and its current record.
type Leaf[S any] struct {
	Source S
	Done   bool // the source is at its end
	Key    []byte
	head   uint64 // the first eight bytes of the key, compared first
}

// Set sets the key of the current record, which must not change before the next Set.
func (l *Leaf[S]) Set(key []byte) {
	l.Key = key
	if len(key) >= 8 {
		l.head = binary.BigEndian.Uint64(key)
		return
	}
	var b [8]byte
	copy(b[:], key)
	l.head = binary.BigEndian.Uint64(b[:])
}

// less reports whether the record of leaf i comes before that of leaf j. Of equal keys, that of the last leaf comes first.
func (t *Tree[S]) less(i, j int32) bool {
	a, b := &t.Leaves[i], &t.Leaves[j]
	switch {
	case a.Done || b.Done:
		return !a.Done
	case a.head != b.head:
		return a.head < b.head
	}
	if c := bytes.Compare(a.Key, b.Key); c != 0 {
		return c < 0
	}
	return i > j
}

// Build plays all matches.
func (t *Tree[S]) Build() {
	n := len(t.Leaves)
	t.losers = make([]int32, max(n, 1))
	winners := make([]int32, 2*n)
	for i := range n {
		winners[n+i] = int32(i)
	}
	for i := n - 1; i > 0; i-- {
		a, b := winners[2*i], winners[2*i+1]
		if t.less(b, a) {
			a, b = b, a
		}
		winners[i], t.losers[i] = a, b
	}
	if n > 1 {
		t.losers[0] = winners[1]
	}
}

// Replay plays the matches of leaf i, which must be First, after its record has changed.
func (t *Tree[S]) Replay(i int) {
	leaf := int32(i)
	for node := (i + len(t.Leaves)) / 2; node > 0; node /= 2 {
		if t.less(t.losers[node], leaf) {
			leaf, t.losers[node] = t.losers[node], leaf
		}
	}
	t.losers[0] = leaf
}

// First returns the index of the winner of the last matches. There must be leaves.
func (t *Tree[S]) First() int { return int(t.losers[0]) }

// Winner returns the leaf with the least key, the last one of several, or nil if all are done.
func (t *Tree[S]) Winner() *Leaf[S] {
	if len(t.Leaves) == 0 {
		return nil
	}
	if l := &t.Leaves[t.losers[0]]; !l.Done {
		return l
	}
	return nil
}
