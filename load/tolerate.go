package load

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"sequins/blocks"
	"sequins/internal/render"
)

// tolerance counts the records that are left out: those whose key is null, and those whose key or value is too long. It
// is safe for concurrent use. A nil *tolerance tolerates none.
type tolerance struct {
	max    int64
	mu     sync.Mutex
	all    int64
	byFile map[string]int64
}

// newTolerance returns a tolerance for max records; nil for none.
func newTolerance(max int64) *tolerance {
	if max <= 0 {
		return nil
	}
	return &tolerance{max: max, byFile: make(map[string]int64)}
}

// sampling returns the tolerance of a sample, which is not counted.
func (t *tolerance) sampling() *tolerance {
	if t == nil {
		return nil
	}
	return newTolerance(math.MaxInt64)
}

// begin forgets the records of a file, which is read from its start, maybe again.
func (t *tolerance) begin(file string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all -= t.byFile[file]
	delete(t.byFile, file)
}

// add reports whether another record of a file may be left out, and counts it then.
func (t *tolerance) add(file string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all >= t.max {
		return false
	}
	t.all++
	t.byFile[file]++
	return true
}

// count returns the number of records that are left out.
func (t *tolerance) count() int64 {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

// Scan implements records. It leaves out what is tolerated.
func (in *Records) Scan() bool {
	if in.tolerance == nil {
		return in.records.Scan()
	}
	for {
		if in.records.Scan() {
			if !isTooLarge(in) || !in.tolerance.add(in.path) {
				return true
			}
			continue
		}
		if !errors.Is(in.records.Err(), render.ErrNullKey) || !in.tolerance.add(in.path) || !in.Resume() {
			return false
		}
	}
}

// Err implements records.
func (in *Records) Err() error { return in.intolerable(in.records.Err()) }

// intolerable adds to an error of a record that others were left out before it.
func (in *Records) intolerable(err error) error {
	if in.tolerance == nil || !errors.Is(err, render.ErrNullKey) && !errors.Is(err, blocks.ErrTooLarge) {
		return err
	}
	return fmt.Errorf("%w; %d records were left out, and max_record_errors allows no more", err, in.tolerance.count())
}

// isTooLarge reports whether the current record does not fit into a block.
func isTooLarge(in *Records) bool {
	return len(in.Key()) > blocks.MaxKey || len(in.Value()) > blocks.MaxValue
}
