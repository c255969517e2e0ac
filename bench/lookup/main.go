// Command lookup compares lookups within a process: blocks with every codec and page size, and
// alternative stores, on the same records and one processor, in turn.
//
// A run builds the files of each contender, opens all, checks their answers, and measures them warm
// (all files in memory) and, with -cold, from the disk, with the bytes read from the kernel's
// accounting.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/table"
)

var (
	records = flag.Int("records", 0, "records (10,000,000, short 200,000)")
	value   = flag.Int("value", 100, "bytes of a value")
	keys    = flag.String("keys", "hex", "hex: 16 random hex digits; user: \"user:\" and 12 digits")
	pattern = flag.String("contenders", "", "those whose names match this regular expression, beside the reference")
	lookups = flag.Int("lookups", 0, "lookups in a turn (200,000, short 20,000)")
	cold    = flag.Int("cold", 0, "lookups in a turn with nothing in memory, in place of warm ones")
	cpu     = flag.Int("cpu", 0, "the processor to run on")
)

func main() {
	setup.Main(func(env *setup.Env) error {
		if err := proc.Pin(*cpu); err != nil {
			return err
		}
		r := run{env: env, spec: data.Spec{Records: env.Size(*records, 10_000_000, 200_000), ValueSize: *value, Keys: *keys}}
		if err := r.spec.Check(); err != nil {
			return err
		}
		if err := r.prepare(); err != nil {
			return err
		}
		if *cold > 0 {
			return r.cold(*cold)
		}
		return r.warm(env.Size(*lookups, 200_000, 20_000))
	})
}

// run is the state that the measurements share.
type run struct {
	env        *setup.Env
	spec       data.Spec
	contenders []contender
	paths      map[string]string // of each contender's files
	rng        *rand.Rand
}

func (r *run) prepare() (err error) {
	r.rng = rand.New(rand.NewPCG(1, uint64(r.spec.Records)))
	r.paths = map[string]string{}
	if r.contenders, err = contenders(*pattern); err != nil {
		return err
	}
	for _, c := range r.contenders {
		if r.paths[c.String()], err = c.build(r.env.Cache, r.spec); err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
	}
	return nil
}

// verify holds a contender's answers to the records, before they are timed.
func (r *run) verify(c contender, n int) error {
	var key []byte
	for range n {
		i := r.rng.IntN(r.spec.Records)
		key = r.spec.Key(key[:0], i)
		v, ok, err := c.get(key)
		if err := r.spec.Verify(i, v, ok, err); err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
		key = r.spec.Absent(key[:0], i)
		if _, ok, err = c.get(key); ok || err != nil {
			return fmt.Errorf("%v: absent key %s: found %v, %w", c, key, ok, err)
		}
	}
	return nil
}

// keyList returns random keys, of records or absent ones, contiguous in memory.
func (r *run) keyList(n int, absent bool) [][]byte {
	size := len(r.spec.Key(nil, 0))
	all := make([]byte, 0, n*size)
	list := make([][]byte, n)
	for i := range list {
		record := r.rng.IntN(r.spec.Records)
		if absent {
			all = r.spec.Absent(all, record)
		} else {
			all = r.spec.Key(all, record)
		}
		list[i] = all[i*size : (i+1)*size : (i+1)*size]
	}
	return list
}

// sink uses the values, so that the compiler does not remove the reads.
var sink struct{ sum byte }

// touch reads every cache line of a value: contenders that return a place in a map have not done it yet.
func touch(value []byte) {
	for i := 0; i < len(value); i += 64 {
		sink.sum += value[i]
	}
	if len(value) > 0 {
		sink.sum += value[len(value)-1]
	}
}

// get looks all keys up and fails unless all, or none, are found.
func get(c contender, keys [][]byte, want bool) error {
	for _, key := range keys {
		v, ok, err := c.get(key)
		if err != nil {
			return err
		}
		if ok != want {
			return fmt.Errorf("key %s: found %v, want %v", key, ok, want)
		}
		touch(v)
	}
	return nil
}

func (r *run) title(what string) string {
	return fmt.Sprintf("%s: %d records, keys of %d bytes (%s), values of %d", what, r.spec.Records, len(r.spec.Key(nil, 0)), r.spec.Keys, r.spec.ValueSize)
}

func (r *run) table(what string) *table.Table { return table.New(r.title(what), reference) }
