//go:build !race

// Under the race detector, sync.Pool forgets things at random, so that there is always something to allocate.

package sequencefile

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"slices"
	"testing"

	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// TestAllocs proves that reading a record allocates nothing, in any mode and with any class, once buffers and decoders
// have grown to what the file needs: the file holds the same records, in the same blocks, three times.
func TestAllocs(t *testing.T) {
	const n = 2000
	var records []record
	for i := range n {
		records = append(records, record{fmt.Appendf(nil, "key-%08d", i), fmt.Appendf(nil, "value %d %0*d", i, 20+i%300, i)})
	}
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // collecting allocates a little by itself
		for _, c := range classes {
			opts.KeyClass, opts.ValueClass = c[0], c[1]
			opts.BlockSize = 10_000
			file := writeFile(t, opts, records)
			body := file[len(writeFile(t, opts, nil)):]
			r, err := NewReader(bytes.NewReader(slices.Concat(file, body, body)), "test")
			expect.NoError(t, err)
			for range n {
				r.Scan()
			}
			// All in one run: an average would be rounded down. (There is a run more, before the one that counts.)
			allocs := testing.AllocsPerRun(1, func() {
				for range n {
					r.Scan()
				}
			})
			if allocs > 2 || r.Err() != nil { // the runtime's own goroutines are counted, too
				t.Errorf("%v: %v allocations for %d records, error %v", c, allocs, n, r.Err())
			}
			if r.Scan() || r.Err() != nil {
				t.Errorf("records too many, or %v", r.Err())
			}
			r.Close()
		}
	})
}

// TestOpenAllocs holds down what opening a file takes when others were read before: loading samples many files.
func TestOpenAllocs(t *testing.T) {
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		file := writeFile(t, opts, smallRecords())
		open := func() {
			r, err := NewReader(bytes.NewReader(file), "test")
			expect.NoError(t, err)
			for r.Scan() {
			}
			r.Close()
		}
		open()
		before := allocated()
		const runs = 50
		for range runs {
			open()
		}
		// The garbage collector may empty the pools now and then.
		if n := (allocated() - before) / runs; n > 256<<10 {
			t.Errorf("%d bytes allocated for each file", n)
		}
	})
}
