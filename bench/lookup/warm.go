package main

import (
	"fmt"
	"runtime"
	"strings"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/table"
	"sequins/blocks"
)

// Columns of the table of warm lookups.
const (
	hit     = "hit ns"
	miss    = "miss ns"
	batch   = "64 at once, ns a hit"
	allocs  = "allocations a hit"
	perKey  = "file B/record"
	heapKey = "memory B/key"
)

const batchSize = 64

func (r *run) warm(n int) error {
	t := r.table("Warm lookups").Column(hit, "%.0f", true).Column(miss, "%.0f", true).Column(batch, "%.0f", true).
		Column(allocs, "%.3f", false).Column(perKey, "%.1f", false).Column(heapKey, "%.2f", false)
	for _, c := range r.contenders {
		if err := r.openWarm(c, t); err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
	}
	err := table.Rounds(r.env.Rounds, r.contenders, func(round int, c contender) error { return r.turn(t, c, n) })
	if err != nil {
		return err
	}
	t.Note("One processor. Every cache line of each value is read. Memory: what opening the store adds to the heap or, the index of a block, lays out beside it.")
	r.noteIndex(t)
	r.checkWarm(t)
	r.env.Print(t)
	for _, c := range r.contenders {
		if err := c.close(); err != nil {
			return err
		}
	}
	return nil
}

// openWarm opens a contender and has it touch all of its pages.
func (r *run) openWarm(c contender, t *table.Table) error {
	files, err := data.Files(r.paths[c.String()])
	if err != nil {
		return err
	}
	// All files come into memory in the same way, so that the kernel holds all in pages as large.
	if err := proc.Drop(files...); err != nil {
		return err
	}
	if err := proc.Warm(files...); err != nil {
		return err
	}
	size, err := data.DiskUse(r.paths[c.String()])
	if err != nil {
		return err
	}
	t.Add(c.String(), perKey, float64(size)/float64(r.spec.Records))
	before := heap()
	if err := c.open(r.paths[c.String()]); err != nil {
		return err
	}
	grown := heap() - before
	if b, ok := c.(*block); ok {
		grown = max(grown, float64(b.r.IndexMemory())) // which may lie beside the heap
	}
	t.Add(c.String(), heapKey, grown/float64(r.spec.Records))
	if err := r.verify(c, 1000); err != nil {
		return err
	}
	// In the order of the keys, twice: the first time a page is read, the second it is mapped.
	var key []byte
	stride := max(1, 512/r.spec.RecordSize())
	for range 2 {
		for i, order := 0, r.spec.Order(); i < len(order); i += stride {
			key = r.spec.Key(key[:0], int(order[i]))
			if _, _, err := c.get(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// heap returns the bytes in use on the heap without garbage.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what has finalisers goes in the second
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func (r *run) turn(t *table.Table, c contender, n int) error {
	present, absent := r.keyList(n, false), r.keyList(n, true)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := timed(t, c, hit, n, func() error { return get(c, present, true) }); err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	t.Add(c.String(), allocs, float64(after.Mallocs-before.Mallocs)/float64(n))
	if err := timed(t, c, miss, n, func() error { return get(c, absent, false) }); err != nil {
		return err
	}
	b, ok := c.(batcher)
	if !ok {
		return nil
	}
	return timed(t, c, batch, n, func() error { return getBatches(b, present) })
}

// timed adds the processor time that a lookup took, that of the garbage collector included.
func timed(t *table.Table, c contender, column string, n int, do func() error) error {
	start := proc.CPU()
	err := do()
	t.Add(c.String(), column, float64(proc.CPU()-start)/float64(n))
	return err
}

func getBatches(b batcher, keys [][]byte) error {
	found := 0
	for i := 0; i < len(keys); i += batchSize {
		if err := b.getBatch(keys[i:min(i+batchSize, len(keys))], func(v []byte) { touch(v); found++ }); err != nil {
			return err
		}
	}
	if found != len(keys) {
		return fmt.Errorf("%d of %d keys found", found, len(keys))
	}
	return nil
}

// noteIndex says what our blocks take in memory for each key.
func (r *run) noteIndex(t *table.Table) {
	var parts []string
	for _, c := range r.contenders {
		if b, ok := c.(*block); ok && b.codec == blocks.None {
			n := float64(r.spec.Records)
			parts = append(parts, fmt.Sprintf("%v: index %.3f B/key in memory, filter %.3f B/key in the map", b, float64(b.r.IndexMemory())/n, float64(b.r.FilterSize())/n))
		}
	}
	t.Note("%s.", strings.Join(parts, "; "))
}

func (r *run) checkWarm(t *table.Table) {
	c := &r.env.Checks
	c.Zero("allocations per hit, "+reference, float64(int(t.Median(reference, allocs)*100)))
	if r.spec.RecordSize() >= 200 {
		return // what follows is promised of small records
	}
	for _, peer := range []struct {
		name  string
		limit float64
	}{{"bbolt", 0.4}, {"pebble", 0.2}, {"sparkey", 1}} {
		c.AtMost("warm hit, ours / "+peer.name, t.Ratio(reference, peer.name, hit), peer.limit)
	}
	c.AtMost("warm hit, our fsst / sparkey's snappy", t.Ratio(usual, "sparkey snappy", hit), 0.7)
	c.AtMost("warm hit, fsst / none", t.Ratio(usual, reference, hit), 1.3)
	c.AtMost("64 at once, fsst / none", t.Ratio(usual, reference, batch), 1.5)
	c.AtMost("64 at once / one by one, a key", t.Median(reference, batch)/t.Median(reference, hit), 0.5)
	c.AtMost("memory of an open block, B/key", t.Median(reference, heapKey), 1)
}
