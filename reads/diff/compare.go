package diff

import (
	"bytes"
	"context"

	"sequins/reads"
)

// checkEvery is the number of records after which a comparison looks whether it is still wanted.
const checkEvery = 4096

// emit receives the differences; nil if nobody wants them.
type emit func(op Op, key []byte) error

// compare counts the differences between the records of two versions. The outcome is that of the scans.
func (r *Row) compare(ctx context.Context, old, now *reads.Scan, each emit) (reads.Outcome, error) {
	haveOld, haveNew := old.Next(), now.Next()
	for n := 0; haveOld || haveNew; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return reads.GivenUp, ctx.Err()
		}
		if o := firstFailure(old, now); o != reads.Found { // before a key of one version is taken for one that the other lacks
			return o, nil
		}
		order := 0
		switch {
		case !haveNew:
			order = -1
		case !haveOld:
			order = 1
		default:
			order = bytes.Compare(old.Key(), now.Key())
		}
		if o, err := r.note(order, old, now, each); o != reads.Found || err != nil {
			return o, err
		}
		if order <= 0 {
			haveOld = old.Next()
		}
		if order >= 0 {
			haveNew = now.Next()
		}
	}
	return firstFailure(old, now), nil
}

// firstFailure returns the outcome of the scan that has failed, or Found.
func firstFailure(old, now *reads.Scan) reads.Outcome {
	if o := old.Outcome(); o != reads.Found {
		return o
	}
	return now.Outcome()
}

// note counts one key, which is only in the old version if order is negative, and only in the new one if it is positive.
func (r *Row) note(order int, old, now *reads.Scan, each emit) (reads.Outcome, error) {
	same := order == 0 && old.SameValue(now)
	if o := firstFailure(old, now); o != reads.Found {
		return o, nil
	}
	if order <= 0 {
		r.OldRecords++
	}
	if order >= 0 {
		r.NewRecords++
	}
	if same {
		return reads.Found, nil
	}
	op, key := Changed, now.Key
	switch {
	case order < 0:
		op, key = Removed, old.Key
		r.Removed++
		r.RemovedBytes += int64(len(old.Key())) + old.Length()
	case order > 0:
		op = Added
		r.Added++
		r.AddedBytes += int64(len(now.Key())) + now.Length()
	default:
		r.Changed++
		r.RemovedBytes += old.Length()
		r.AddedBytes += now.Length()
	}
	r.sample(op, key())
	if each == nil {
		return reads.Found, nil
	}
	return reads.Found, each(op, key())
}
