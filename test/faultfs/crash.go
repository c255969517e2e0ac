package faultfs

import (
	"cmp"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash returns the file system after a power loss at this moment. What was fsynced is kept. The rest is decided by
// pick, which is called with the number of possibilities n and returns one of them: 0 is the loss and n-1 the survival
// of everything that was not fsynced. Use [Lose], [Keep] or [Seeded]; [FS.Outcomes] iterates over all results.
//
// File content that was not fsynced is lost, truncated to half, replaced by zeros (the length was written, the blocks
// were not), or kept. Each creation, rename or removal whose directory was not fsynced is lost or kept independently,
// as on a file system without an ordered journal; a rename is atomic, except that a file renamed into another directory
// may exist in both.
//
// Crash does not modify f. Files open in f are not open in the result.
func (f *FS) Crash(pick func(n int) int) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := crash{pick: pick, kept: map[*dirOp]bool{}, copies: map[*node]*node{}}
	for _, op := range unsynced(f.root) {
		if op.needs == nil || op.needs.durable || c.kept[op.needs] {
			c.kept[op] = pick(2) == 1
		}
	}
	return &FS{root: c.copy(f.root)}
}

// Lose is a pick for Crash: everything that was not fsynced is lost.
func Lose(int) int { return 0 }

// Keep is a pick for Crash: nothing is lost.
func Keep(n int) int { return n - 1 }

// Seeded returns a pick for Crash with reproducible random losses.
func Seeded(seed uint64) func(n int) int { return rand.New(rand.NewPCG(seed, 0)).IntN }

// Outcomes yields every file system that a power loss at this moment may leave, if there are at most limit; otherwise
// [Lose], [Keep] and random ones, limit in total.
func (f *FS) Outcomes(limit int) iter.Seq[*FS] {
	return func(yield func(*FS) bool) {
		picks, all := f.picks(limit)
		if !all {
			picks = [][]int{}
			if !yield(f.Crash(Lose)) || !yield(f.Crash(Keep)) {
				return
			}
			for seed := range limit - 2 {
				if !yield(f.Crash(Seeded(uint64(seed)))) {
					return
				}
			}
		}
		for _, p := range picks {
			if !yield(f.Crash(replay(p))) {
				return
			}
		}
	}
}

// picks returns the sequences of answers of pick that lead to different outcomes, up to limit, and reports whether
// these are all.
func (f *FS) picks(limit int) (picks [][]int, all bool) {
	next := []int{}
	for range limit {
		var got, of []int
		f.Crash(func(n int) int {
			p := 0
			if len(got) < len(next) {
				p = next[len(got)]
			}
			got, of = append(got, p), append(of, n)
			return p
		})
		picks = append(picks, got)
		next = slices.Clone(got)
		for len(next) > 0 && next[len(next)-1]+1 == of[len(next)-1] {
			next = next[:len(next)-1]
		}
		if len(next) == 0 {
			return picks, true
		}
		next[len(next)-1]++
	}
	return picks, false
}

// replay returns a pick that returns these answers in turn.
func replay(answers []int) func(int) int {
	return func(int) int {
		a := answers[0]
		answers = answers[1:]
		return a
	}
}

// unsynced returns the directory operations that are not durable, in order.
func unsynced(root *node) []*dirOp {
	var ops []*dirOp
	seen := map[*node]bool{}
	var walk func(n *node)
	walk = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		ops = append(ops, n.pending...)
		for _, op := range n.pending {
			walk(op.node)
		}
		for _, child := range n.entries {
			walk(child)
		}
		for _, child := range n.durable {
			walk(child)
		}
	}
	walk(root)
	slices.SortFunc(ops, func(a, b *dirOp) int { return cmp.Compare(a.seq, b.seq) })
	return ops
}

// crash is the state of one Crash.
type crash struct {
	pick   func(n int) int
	kept   map[*dirOp]bool
	copies map[*node]*node
}

// copy returns n as it is after the power loss.
func (c *crash) copy(n *node) *node {
	if left := c.copies[n]; left != nil {
		return left
	}
	left := &node{}
	c.copies[n] = left
	if !n.dir {
		left.data = c.content(n)
		left.synced = len(left.data)
		return left
	}
	*left = *newDir()
	entries := maps.Clone(n.durable)
	for _, op := range n.pending {
		if c.kept[op] {
			op.apply(entries)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		child := c.copy(entries[name])
		child.links++
		left.entries[name], left.durable[name] = child, child
	}
	return left
}

// content returns a file's content after the power loss.
func (c *crash) content(n *node) []byte {
	if n.synced == len(n.data) {
		return slices.Clone(n.data)
	}
	durable, rest := slices.Clone(n.data[:n.synced]), n.data[n.synced:]
	switch c.pick(4) {
	case 0:
		return durable
	case 1:
		return append(durable, rest[:len(rest)/2]...)
	case 2:
		return append(durable, make([]byte, len(rest))...)
	default:
		return append(durable, rest...)
	}
}
