package main

import (
	"fmt"
	"time"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/table"
)

// Columns of the table of cold lookups.
const (
	coldTime   = "µs a hit"
	coldDevice = "disk reads a hit"
	coldCalls  = "read calls a hit"
	coldBytes  = "bytes read a hit"
	coldFaults = "major faults a hit"
	coldMiss   = "disk reads a miss"
)

// cold measures lookups of random keys while nothing but what opening a store read is in memory.
func (r *run) cold(n int) error {
	t := r.table("Cold lookups").Column(coldTime, "%.0f", true).Column(coldDevice, "%.3f", false).Column(coldCalls, "%.3f", false).
		Column(coldBytes, "%.0f", false).Column(coldFaults, "%.3f", false).Column(coldMiss, "%.3f", false)
	if err := table.Rounds(r.env.Rounds, r.contenders, func(_ int, c contender) error { return r.coldTurn(t, c, n) }); err != nil {
		return err
	}
	t.Note("Before each turn of %d lookups the store is closed, its files dropped from memory (posix_fadvise, checked with mincore) and opened again.", n)
	t.Note("Disk reads: completed read requests of the whole disk. Calls and bytes: /proc/self/io. Major faults: getrusage.")
	r.env.Checks.AtMost("disk reads per cold hit, "+reference, t.Median(reference, coldDevice), 1.005)
	// One call sees that the page is not in memory, and one reads it. The process reads its own eventfd now and then: one call
	// among a thousand lookups is not theirs.
	r.env.Checks.AtMost("read calls per cold hit, "+reference, t.Median(reference, coldCalls), 2.001)
	r.env.Checks.Zero("major faults per cold hit, "+reference, t.Max(reference, coldFaults))
	r.env.Print(t)
	return nil
}

func (r *run) coldTurn(t *table.Table, c contender, n int) error {
	path := r.paths[c.String()]
	files, err := data.Files(path)
	if err != nil {
		return err
	}
	if err := proc.Drop(files...); err != nil {
		return err
	}
	if err := c.open(path); err != nil {
		return err
	}
	defer c.close()
	present, absent := r.farApart(n), r.keyList(n, true)
	start := time.Now()
	hits, err := counted(path, func() error { return get(c, present, true) })
	if err != nil {
		return err
	}
	took := time.Since(start)
	misses, err := counted(path, func() error { return get(c, absent, false) })
	if err != nil {
		return err
	}
	for column, sum := range map[string]float64{
		coldTime: float64(took.Nanoseconds()) / 1e3, coldDevice: float64(hits.Device), coldCalls: float64(hits.Calls),
		coldBytes: float64(hits.Bytes), coldFaults: float64(hits.MajorFaults), coldMiss: float64(misses.Device),
	} {
		t.Add(c.String(), column, sum/float64(n))
	}
	return nil
}

// farApart returns keys, no two of them in the same page, in random order.
func (r *run) farApart(n int) [][]byte {
	order := r.spec.Order()
	stride := len(order) / n
	list := make([][]byte, n)
	for i := range list {
		list[i] = r.spec.Key(nil, int(order[i*stride+r.rng.IntN(stride/2+1)]))
	}
	r.rng.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// counted returns the bytes read from disk meanwhile, without those of the counting itself.
func counted(path string, do func() error) (proc.Reads, error) {
	nothing, err := readsOf(path, func() error { return nil })
	if err != nil {
		return proc.Reads{}, err
	}
	reads, err := readsOf(path, do)
	return reads.Sub(nothing), err
}

func readsOf(path string, do func() error) (proc.Reads, error) {
	before, err := proc.ReadsSoFar(path)
	if err != nil {
		return proc.Reads{}, err
	}
	if err := do(); err != nil {
		return proc.Reads{}, fmt.Errorf("cold: %w", err)
	}
	after, err := proc.ReadsSoFar(path)
	return after.Sub(before), err
}
