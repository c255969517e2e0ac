package load

import (
	"cmp"
	"context"
	"slices"

	"sequins/internal/parallel"
	"sequins/shard"
)

// sampleParallel is how many files are opened in parallel, for sources with a high latency.
const sampleParallel = 8

type sample struct {
	fits  *shard.Detector
	keys  int  // that were read
	found bool // one of them is not deleted
	whole bool // there is no more to read
}

// sampleGroup rules out what does not fit the first keys of the files of a group, at most most of each, and returns how many it has
// read. It decides only between rounds, each of which reads a fixed number of keys, so that the result does not depend on timing. Each round
// reads the files from their beginnings: a reader that is kept for the next one holds a block of its file, which may be large.
func (l *Loader) sampleGroup(ctx context.Context, plan *Plan, names layout, group []int, most int, fit *shard.Detector) (read int, err error) {
	files := make([]sample, len(group))
	for upTo := sampleFirst; ; upTo *= sampleGrowth {
		if err := l.sampleEach(len(files), func(i int) error {
			if files[i].whole {
				return nil
			}
			files[i] = sample{fits: names.detector()}
			return l.readKeys(ctx, plan, group[i], &files[i], min(upTo, most), sampleBytes/len(group))
		}); err != nil {
			return 0, err
		}
		read = 0
		for _, f := range files {
			fit.Merge(f.fits)
			read += f.keys
			plan.sampled = plan.sampled || f.found
		}
		if fit.Decided() || upTo >= most || !slices.ContainsFunc(files, func(f sample) bool { return !f.whole }) {
			return read, nil
		}
	}
}

// readKeys reads the first upTo keys of a file, or a number of bytes.
func (l *Loader) readKeys(ctx context.Context, plan *Plan, file int, f *sample, upTo, bytes int) error {
	in, err := l.openKeys(ctx, plan, plan.Files[file])
	if err != nil {
		return err
	}
	for read := 0; f.keys < upTo && !f.whole; {
		if f.whole = read >= bytes || !in.Scan(); !f.whole {
			f.fits.Add(plan.parts[file], in.Key())
			read += len(in.Key()) + len(in.Value())
			f.found = f.found || !in.Deleted()
			f.keys++
		}
	}
	l.progress.fetched(in.fetched(), int64(f.keys))
	err = in.Err()
	_ = in.Close() // an error of closing does not change the result
	return err
}

// sampleEach calls f for 0 … n-1, some in parallel unless the load has one worker to save memory, and returns the error of the first of these that
// fails. It waits for all, so that the
// error does not depend on timing: at each attempt to load a faulty version it is the same.
func (l *Loader) sampleEach(n int, f func(i int) error) error {
	errs := make([]error, n)
	workers := min(sampleParallel, n)
	if l.opts.Workers == 1 {
		workers = 1
	}
	_ = parallel.Run(context.Background(), workers, n, func(_ context.Context, i int) error {
		errs[i] = f(i)
		return nil
	})
	return cmp.Or(errs...)
}
