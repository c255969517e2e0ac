package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
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

// anyRecord reports whether there is a record. It reads the largest file before the others, because
// that one almost always has a record.
func (l *Loader) anyRecord(ctx context.Context, plan *Plan) (bool, error) {
	order := make([]int, len(plan.Files))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(plan.Files[b].Size, plan.Files[a].Size) })
	found, err := l.hasRecord(ctx, plan, order[0])
	if found || err != nil {
		return found, err
	}
	var any atomic.Bool
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sampleParallel)
	for _, file := range order[1:] {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			found, err := l.hasRecord(ctx, plan, file)
			if found {
				any.Store(true)
				return errFound // stops the others
			}
			return err
		})
	}
	if err := g.Wait(); !any.Load() {
		return false, err
	}
	return true, nil
}

// hasRecord reports whether a file has a record other than deletes. It returns true for a damaged file,
// because LoadInto reports a better error.
func (l *Loader) hasRecord(ctx context.Context, plan *Plan, file int) (found bool, err error) {
	in, err := l.openKeys(ctx, plan, plan.Files[file])
	if err == nil {
		for !found && in.Scan() {
			found = !in.deleted()
		}
		err = in.Err()
		l.metrics.Read(plan.DB, in.fetched(), 0)
		_ = in.close() // an error of closing does not change the result
	}
	if found || Faulty(err) {
		return true, nil
	}
	return false, err
}
