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

// A sample is the beginning of one file.
type sample struct {
	file  int      // index in the plan
	in    *Records // nil until opened
	fits  *shard.Detector
	keys  int  // that were read
	bytes int  // of keys and values that were read
	found bool // one of them is not deleted
	done  bool // read far enough
}

// sampleGroup rules out what does not fit the first keys of the files of a group, at most most of each, and returns how many it has
// read. It decides only between rounds, each of which reads a fixed number of keys, so that the result does not depend on timing.
func (l *Loader) sampleGroup(ctx context.Context, plan *Plan, names layout, group []int, most int, fit *shard.Detector) (read int, err error) {
	files := make([]sample, len(group))
	for i, file := range group {
		files[i] = sample{file: file, fits: names.detector()}
	}
	defer func() {
		for _, f := range files {
			if f.in != nil {
				l.metrics.Read(plan.DB, f.in.fetched(), int64(f.keys))
				_ = f.in.Close() // an error of closing does not change the result
			}
		}
	}()
	for upTo := sampleFirst; ; upTo *= sampleGrowth {
		if err := sampleEach(len(files), func(i int) error {
			return l.readKeys(ctx, plan, &files[i], min(upTo, most), sampleBytes/len(group))
		}); err != nil {
			return 0, err
		}
		read = 0
		for _, f := range files {
			fit.Merge(f.fits)
			read += f.keys
			plan.sampled = plan.sampled || f.found
		}
		if fit.Decided() || upTo >= most || !slices.ContainsFunc(files, func(f sample) bool { return !f.done }) {
			return read, nil
		}
	}
}

// readKeys reads the first upTo keys of a file, or a number of bytes.
func (l *Loader) readKeys(ctx context.Context, plan *Plan, f *sample, upTo, bytes int) (err error) {
	if f.in == nil {
		if f.in, err = l.openKeys(ctx, plan, plan.Files[f.file]); err != nil {
			return err
		}
	}
	for !f.done && f.keys < upTo {
		if f.bytes >= bytes || !f.in.Scan() {
			f.done = true
			break
		}
		f.fits.Add(plan.parts[f.file], f.in.Key())
		f.bytes += len(f.in.Key()) + len(f.in.Value())
		f.found = f.found || !f.in.Deleted()
		f.keys++
	}
	return f.in.Err()
}

// sampleEach calls f for 0 … n-1, some in parallel, and returns the error of the first of these that fails. It waits for all, so that the
// error does not depend on timing: at each attempt to load a faulty version it is the same.
func sampleEach(n int, f func(i int) error) error {
	errs := make([]error, n)
	_ = parallel.Run(context.Background(), min(sampleParallel, n), n, func(_ context.Context, i int) error {
		errs[i] = f(i)
		return nil
	})
	return cmp.Or(errs...)
}
