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

// A sampler samples a group of files.
type sampler struct {
	l     *Loader
	plan  *Plan
	files []*sample
	names layout
	fit   *shard.Detector // what fits every key so far
	limit int             // keys to read from the start of each file
	bytes int             // bytes of keys and values, likewise
}

// A sample is the sampled part of one file.
type sample struct {
	file  int      // index in the plan
	in    *Records // nil until opened
	fits  *shard.Detector
	read  int  // keys read from the start
	bytes int  // bytes of keys and values read from the start
	done  bool // read far enough from the start
	found bool // there was a record that is not a delete
}

// run samples the heads of the files and then, while several cuts fit, their ends and middles if
// places is set, and finally more from their starts. It decides only between rounds, each of which
// reads a fixed number of keys, so that the result does not depend on timing.
func (s *sampler) run(ctx context.Context, places bool) error {
	defer s.close()
	if err := s.start(ctx, sampleFirst); err != nil {
		return err
	}
	if places {
		for place := range samplePlaces {
			if err := s.round(func(f *sample) error { return s.probe(ctx, f, place) }); err != nil {
				return err
			}
		}
	}
	for upTo := sampleFirst * sampleGrowth; !s.finished(); upTo *= sampleGrowth {
		if err := s.start(ctx, upTo); err != nil {
			return err
		}
	}
	return nil
}

// round runs work on every file in parallel, and rules out what no longer fits. It does
// nothing if the cut is decided.
func (s *sampler) round(work func(*sample) error) error {
	if s.fit.Decided() {
		return nil
	}
	if err := sampleEach(len(s.files), func(i int) error { return work(s.files[i]) }); err != nil {
		return err
	}
	for _, f := range s.files {
		s.fit.Merge(f.fits)
	}
	return nil
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

// start reads each file from its start until upTo keys are read.
func (s *sampler) start(ctx context.Context, upTo int) error {
	return s.round(func(f *sample) error { return s.readKeys(ctx, f, upTo) })
}

// finished reports whether no file has more to read or the cut is decided.
func (s *sampler) finished() bool {
	return s.fit.Decided() || !slices.ContainsFunc(s.files, func(f *sample) bool { return !f.done })
}

// most returns the maximum number of keys to read from the start of a file.
func (s *sampler) most(f *sample) int {
	if s.plan.Files[f.file].Size < sampleShort {
		return max(s.limit, sampleWhole)
	}
	return s.limit
}

// readKeys continues reading a file until upTo keys are read.
func (s *sampler) readKeys(ctx context.Context, f *sample, upTo int) (err error) {
	if f.done {
		return nil
	}
	if f.in == nil {
		if f.in, err = s.l.openKeys(ctx, s.plan, s.plan.Files[f.file]); err != nil {
			return err
		}
	}
	most := s.most(f)
	upTo = min(upTo, most)
	for f.read < upTo && f.bytes < s.bytes && f.in.Scan() {
		f.fits.Add(s.plan.parts[f.file], f.in.Key())
		f.bytes += len(f.in.Key()) + len(f.in.Value())
		f.found = f.found || !f.in.Deleted()
		f.read++
	}
	f.done = f.read < upTo || f.read == most
	return f.in.Err()
}

// read returns how many keys were read from the starts of the files, counting at most limit per file.
func (s *sampler) read() int {
	n := 0
	for _, f := range s.files {
		n += min(f.read, s.limit)
	}
	return n
}

// found reports whether any of the files has a record.
func (s *sampler) found() bool {
	return slices.ContainsFunc(s.files, func(f *sample) bool { return f.found })
}

// close closes the files and counts what was read of them. Errors of closing do not change the result.
func (s *sampler) close() {
	for _, f := range s.files {
		if f.in != nil {
			s.l.metrics.Read(s.plan.DB, f.in.fetched(), int64(f.read))
			_ = f.in.Close()
		}
	}
}
