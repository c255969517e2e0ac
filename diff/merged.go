package diff

import (
	"bytes"
	"container/heap"

	"sequins/version"
)

// mergedSpan is span for a version whose partitions are all read at once: all together take no more than mergedMemory.
const (
	mergedMemory  = 64 << 20
	minMergedSpan = 8 << 10
)

// merged walks over all records of a version.
type merged struct {
	h     *version.Handle
	heads []*head // a heap; the first has the current record
	begun bool
	err   error
}

// head is the walk over one partition, which stands at a record.
type head struct {
	partition int
	block     version.Block
	local
}

// newMerged returns the records of a version. The error is version.ErrNotLocal if a partition is not here.
func newMerged(h *version.Handle) (*merged, error) {
	m := &merged{h: h}
	size := max(minMergedSpan, min(span, mergedMemory/2/max(1, h.Partitions())))
	for p := range h.Partitions() {
		b := h.Block(p)
		if b == nil {
			return nil, version.ErrNotLocal
		}
		one := &head{p, b, local{b.IterWithin(nil, nil, size)}}
		if one.Next() {
			m.heads = append(m.heads, one)
		} else if err := one.Err(); err != nil {
			return nil, reported(h, p, b, err)
		}
	}
	heap.Init(m)
	return m, nil
}

// Next implements records.
func (m *merged) Next() bool {
	if m.begun && m.err == nil && len(m.heads) > 0 {
		first := m.heads[0]
		if first.Next() {
			heap.Fix(m, 0)
		} else {
			if err := first.Err(); err != nil {
				m.err = reported(m.h, first.partition, first.block, err)
			}
			heap.Pop(m)
		}
	}
	m.begun = true
	return m.err == nil && len(m.heads) > 0
}

// Key implements records.
func (m *merged) Key() []byte { return m.heads[0].Key() }

// Size implements records.
func (m *merged) Size() int64 { return m.heads[0].Size() }

// Hash implements records.
func (m *merged) Hash() uint64 { return m.heads[0].Hash() }

// Bytes implements records.
func (m *merged) Bytes() []byte { return m.heads[0].Bytes() }

// Err implements records.
func (m *merged) Err() error { return m.err }

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (m *merged) Len() int { return len(m.heads) }

// Less implements heap.Interface.
func (m *merged) Less(i, j int) bool {
	return bytes.Compare(m.heads[i].Key(), m.heads[j].Key()) < 0
}

// Swap implements heap.Interface.
func (m *merged) Swap(i, j int) { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }

// Push implements heap.Interface.
func (m *merged) Push(x any) { m.heads = append(m.heads, x.(*head)) }

// Pop implements heap.Interface.
func (m *merged) Pop() any {
	last := m.heads[len(m.heads)-1]
	m.heads = m.heads[:len(m.heads)-1]
	return last
}
