// Package hotkeys finds the keys of a db that are read most, from a sample of its reads and in little memory.
//
// A Sketch is the space-saving algorithm of Metwally et al.: it counts slotCount keys, and a key that it does not count takes
// the place of the one with the lowest count, which it inherits as its possible excess. A key with a share of more than
// 1/slotCount of the reads is always counted. Counts decay exponentially, so that they describe the last minutes.
package hotkeys

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// slotCount is the number of keys that a sketch counts.
	slotCount = 128
	// halfLife is the time in which a count decays by half.
	halfLife = time.Minute
	// MaxKey is the number of bytes that are kept of a key.
	MaxKey = 128
	// minReads and minShare are the minimum for a key in Top: its certain sampled reads, after decay, and their share
	// of all.
	minReads = 3
	minShare = 0.001
)

// Key is a key that is read often.
type Key struct {
	ID uint64
	// Name is the beginning of the key, up to MaxKey bytes, if it is known; Cut reports whether there is more.
	Name []byte
	Cut  bool
	// Share is its part of the reads, from 0 to 1. It is certain: the true share may be higher.
	Share float64
	// PerSecond is the estimated number of reads per second.
	PerSecond float64
}

// Sketch counts the keys of a db. The zero value is empty. It is safe for concurrent use.
type Sketch struct {
	mu    sync.Mutex
	index map[uint64]int // of the slot of a key
	slots []slot
	// Counts are scaled: a sample at the time t adds 2^((t-base)/halfLife), which is 1 at base.
	counts []float64
	total  float64
	base   time.Time
	first  time.Time // of the first sample
}

type slot struct {
	id     uint64
	excess float64 // by how much the count may be too high
	name   []byte
	known  bool // name is the key's
	cut    bool
}

// Add adds a sampled read of a key at a time. id identifies the key. If name is not nil, Add keeps a copy of its beginning.
func (s *Sketch) Add(id uint64, name []byte, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil {
		s.index = make(map[uint64]int, slotCount)
		s.base, s.first = at, at
	}
	weight := s.weight(at)
	s.total += weight
	i, counted := s.index[id]
	if !counted {
		i = s.take(id)
	}
	s.counts[i] += weight
	if name != nil && !s.slots[i].known {
		to := &s.slots[i]
		to.name = append(to.name[:0], name[:min(len(name), MaxKey)]...)
		to.known, to.cut = true, len(name) > MaxKey
	}
}

// weight returns what a sample adds. It moves base before the weights become too large.
func (s *Sketch) weight(at time.Time) float64 {
	age := at.Sub(s.base)
	if age < 64*halfLife {
		return math.Exp2(float64(age) / float64(halfLife))
	}
	factor := math.Exp2(-float64(age) / float64(halfLife))
	s.base = at
	s.total *= factor
	for i := range s.counts {
		s.counts[i] *= factor
		s.slots[i].excess *= factor
	}
	return 1
}

// take returns a slot for a key that has none.
func (s *Sketch) take(id uint64) int {
	i := len(s.slots)
	if i < slotCount {
		s.slots, s.counts = append(s.slots, slot{id: id}), append(s.counts, 0)
	} else {
		i = s.lowest()
		old := &s.slots[i]
		delete(s.index, old.id)
		*old = slot{id: id, excess: s.counts[i], name: old.name}
	}
	s.index[id] = i
	return i
}

// lowest returns the slot with the lowest count.
func (s *Sketch) lowest() int {
	least, at := s.counts[0], 0
	for i, n := range s.counts {
		if n < least {
			least, at = n, i
		}
	}
	return at
}

// Top returns the keys that are read most, at most n, the first most of all. Each sample stands for every reads.
func (s *Sketch) Top(n, every int, now time.Time) []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total == 0 {
		return nil
	}
	decay := math.Exp2(-float64(now.Sub(s.base)) / float64(halfLife))
	rate := s.total * decay * float64(every) * s.perSecond(now)
	var top []Key
	for i := range s.slots {
		from := &s.slots[i]
		certain := s.counts[i] - from.excess
		share := certain / s.total
		if certain*decay < minReads || share < minShare {
			continue
		}
		k := Key{ID: from.id, Share: share, PerSecond: share * rate}
		if from.known {
			k.Name, k.Cut = bytes.Clone(from.name), from.cut
		}
		top = append(top, k)
	}
	slices.SortFunc(top, func(a, b Key) int { return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.ID, b.ID)) })
	return top[:min(len(top), n)]
}

// perSecond returns the rate at which one sample per second and its predecessors have the decayed count 1. At a constant
// rate r since the first sample, the decayed count is the integral of r/2^(t/halfLife).
func (s *Sketch) perSecond(now time.Time) float64 {
	age := max(now.Sub(s.first), time.Second)
	return math.Ln2 / halfLife.Seconds() / (1 - math.Exp2(-float64(age)/float64(halfLife)))
}
