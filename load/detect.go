package load

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"sequins/shard"
)

// How much of a version is looked at to find its partitioner. These numbers
// are part of the contract between nodes: with other ones, a node could come
// to another answer.
const (
	sampleFiles   = 32      // spread evenly
	sampleFirst   = 64      // keys of each file at first
	sampleGrowth  = 4       // times as many at each further look
	sampleRecords = 100_000 // in all
	sampleMost    = 1024    // files that are opened, where they have few records
)

// sampleParallel is how many files are opened at a time, for sources whose
// opening takes its time.
const sampleParallel = 8

// detect finds the function that the files were cut with. Where several fit,
// it reads on until one is left or enough is read. Where none does, the answer
// is String, not aligned.
func (l *Loader) detect(ctx context.Context, plan *Plan) (_ shard.Partitioner, aligned bool, err error) {
	if plan.Partitions == 1 {
		return shard.String, true, nil // everything fits
	}
	fit := shard.Partitioners()
	budget := sampleRecords
	for _, group := range sampleGroups(len(plan.Files)) {
		if len(fit) <= 1 || budget < len(group) {
			break
		}
		s := sampler{l: l, plan: plan, files: make([]sample, len(group))}
		for i, file := range group {
			s.files[i] = sample{file: file, fits: shard.NewDetector(plan.Partitions)}
		}
		if fit, err = s.run(ctx, fit, budget/len(group)); err != nil {
			return 0, false, err
		}
		budget -= s.read()
	}
	if len(fit) == 0 {
		return shard.String, false, nil
	}
	return fit[0], true, nil
}

// sampleGroups says which of n files are looked at together: first those
// spread evenly, then, in case these have too few records, the others.
func sampleGroups(n int) [][]int {
	if n <= sampleFiles {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return [][]int{all}
	}
	var even, rest []int
	for i := range sampleFiles {
		even = append(even, i*n/sampleFiles)
	}
	for i := range n {
		if _, found := slices.BinarySearch(even, i); !found {
			rest = append(rest, i)
		}
	}
	rest = rest[:min(len(rest), sampleMost-sampleFiles)]
	return append([][]int{even}, slices.Collect(slices.Chunk(rest, sampleFiles))...)
}

// A sampler looks at a group of files.
type sampler struct {
	l     *Loader
	plan  *Plan
	files []sample
}

// A sample is what is read of one file.
type sample struct {
	file int    // index into the plan's
	in   *input // nil before it is opened
	fits *shard.Detector
	read int
	done bool // all is read, or nothing fits any more
}

// run reads up to limit keys of each file and returns which partitioners of
// fit are left. It decides only between two rounds, in each of which a fixed
// number of keys is read, so that the answer does not depend on which file was
// read faster.
func (s *sampler) run(ctx context.Context, fit []shard.Partitioner, limit int) ([]shard.Partitioner, error) {
	defer s.close()
	for upTo := sampleFirst; ; upTo *= sampleGrowth {
		upTo = min(upTo, limit)
		var g errgroup.Group
		g.SetLimit(sampleParallel)
		for i := range s.files {
			g.Go(func() error {
				return s.look(ctx, &s.files[i], upTo)
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		done := true
		for _, f := range s.files {
			left := f.fits.Candidates()
			fit = slices.DeleteFunc(fit, func(p shard.Partitioner) bool { return !slices.Contains(left, p) })
			done = done && f.done
		}
		if len(fit) <= 1 || done || upTo == limit {
			return fit, nil
		}
	}
}

// look reads on in a file until upTo of its keys are read.
func (s *sampler) look(ctx context.Context, f *sample, upTo int) (err error) {
	if f.done {
		return nil
	}
	if f.in == nil {
		if f.in, err = s.l.open(ctx, s.plan, s.plan.Files[f.file]); err != nil {
			return err
		}
	}
	for f.read < upTo && f.in.Scan() {
		f.fits.Add(s.plan.parts[f.file], f.in.Key())
		f.read++
	}
	f.done = f.read < upTo
	return f.in.Err()
}

// read returns how many records were read.
func (s *sampler) read() int {
	n := 0
	for _, f := range s.files {
		n += f.read
	}
	return n
}

// close gives up the files, and counts what was read of them. What they were
// opened for is done: an error of closing one has nothing to say about that.
func (s *sampler) close() {
	for _, f := range s.files {
		if f.in != nil {
			s.l.metrics.Read(s.plan.DB, f.in.fetched(), int64(f.read))
			_ = f.in.close()
		}
	}
}
