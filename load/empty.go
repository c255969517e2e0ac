package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"sequins/internal/parallel"
	"sequins/source"
)

// errFound stops the search for a record.
var errFound = errors.New("a record was found")

// requireRecords returns ErrNoRecords if none of the version's files has a record, unless the version
// may be empty. It checks all files, whichever this node loads, so that all nodes get the same result.
func (l *Loader) requireRecords(ctx context.Context, plan *Plan) error {
	if plan.sampled || l.opts.AllowEmpty {
		return nil
	}
	found, err := l.anyRecord(ctx, plan)
	if err == nil && !found {
		err = fmt.Errorf("%s: %w; allow_empty would make it an empty version", l.src.Path(plan.DB, plan.Version), ErrNoRecords)
	}
	return err
}

// anyRecord reports whether there is a record. It reads the largest file before the others, because that one almost always has
// one.
func (l *Loader) anyRecord(ctx context.Context, plan *Plan) (bool, error) {
	files := slices.SortedStableFunc(slices.Values(plan.Files), func(a, b source.File) int { return cmp.Compare(b.Size, a.Size) })
	largest, others := files[0], files[1:]
	if here, err := l.hasRecord(ctx, plan, largest); here || err != nil {
		return here, err
	}
	var found atomic.Bool
	err := parallel.Run(ctx, sampleParallel, len(others), func(ctx context.Context, i int) error {
		here, err := l.hasRecord(ctx, plan, others[i])
		if here {
			found.Store(true)
			return errFound // stops the others
		}
		return err
	})
	if found.Load() {
		return true, nil
	}
	return false, err
}

// hasRecord reports whether a file has a record other than deletes. It returns true for a damaged file,
// because LoadInto reports a better error.
func (l *Loader) hasRecord(ctx context.Context, plan *Plan, file source.File) (found bool, err error) {
	in, err := l.openKeys(ctx, plan, file)
	if err == nil {
		for !found && in.Scan() {
			found = !in.Deleted()
		}
		err = in.Err()
		l.metrics.Read(plan.DB, in.fetched(), 0)
		_ = in.Close() // an error of closing does not change the result
	}
	if found || Faulty(err) {
		return true, nil
	}
	return false, err
}
