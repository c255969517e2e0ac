package load

import (
	"errors"
	"fmt"
	"sync/atomic"

	"sequins/blocks"
	"sequins/internal/render"
)

// tolerance counts the records that are left out: those whose key is null, and those whose key or value is too long. It
// is safe for concurrent use. A nil *tolerance tolerates none.
type tolerance struct {
	max int64
	all atomic.Int64
}

// newTolerance returns a tolerance for max records; nil for none.
func newTolerance(max int64) *tolerance {
	if max <= 0 {
		return nil
	}
	return &tolerance{max: max}
}

// add reports whether another record may be left out, and counts it then.
func (t *tolerance) add() bool {
	if t.all.Add(1) <= t.max {
		return true
	}
	t.forget(1)
	return false
}

// forget takes back records of files that are read again.
func (t *tolerance) forget(n int64) {
	if t != nil {
		t.all.Add(-n)
	}
}

// count returns the number of records that are left out.
func (t *tolerance) count() int64 {
	if t == nil {
		return 0
	}
	return t.all.Load()
}

// leaveOut reports whether the current record may be left out for a reason, and counts it then.
func (in *Records) leaveOut(why error) bool {
	if !in.tolerance.add() {
		return false
	}
	if in.leftOut++; in.leftOut == 1 {
		in.firstLeftOut = why
	}
	return true
}

// LeftOut returns the number of records that Scan has left out, and why the first of them.
func (in *Records) LeftOut() (n int64, first error) { return in.leftOut, in.firstLeftOut }

// Scan implements records. It leaves out what is tolerated.
func (in *Records) Scan() bool {
	if in.tolerance == nil {
		return in.records.Scan()
	}
	for {
		if in.records.Scan() {
			if !isTooLarge(in) || !in.leaveOut(tooLarge(in)) {
				return true
			}
			continue
		}
		if err := in.records.Err(); !errors.Is(err, render.ErrNullKey) || !in.leaveOut(err) {
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
