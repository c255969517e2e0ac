package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sequins/source"
)

// requireRecords returns ErrNoRecords if none of the version's files has a record, unless the version
// may be empty. It checks all files until one has a record, whichever this node loads, so that all nodes get the same result.
func (l *Loader) requireRecords(ctx context.Context, plan *Plan) error {
	if plan.sampled || l.opts.AllowEmpty {
		return nil
	}
	for _, f := range slices.SortedStableFunc(slices.Values(plan.Files), func(a, b source.File) int { return cmp.Compare(b.Size, a.Size) }) {
		if found, err := l.hasRecord(ctx, plan, f); found || err != nil { // the largest one almost always has one
			return err
		}
	}
	return fmt.Errorf("%s: %w; allow_empty would make it an empty version", l.src.Path(plan.DB, plan.Version), ErrNoRecords)
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
		l.progress.fetched(in.fetched(), 0)
		_ = in.Close() // an error of closing does not change the result
	}
	if found || Faulty(err) {
		return true, nil
	}
	return false, err
}
