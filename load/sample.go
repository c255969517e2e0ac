package load

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"sequins/shard"
)

// sampleParallel is how many files are opened at a time, for sources whose
// opening takes its time.
const sampleParallel = 8

// A sampler looks at a group of files.
type sampler struct {
	l     *Loader
	plan  *Plan
	files []*sample
	fit   []shard.Partitioner // those that fit every key so far
	limit int                 // keys to read from the start of each file
	bytes int                 // of keys and values, likewise
}

// A sample is what is read of one file.
type sample struct {
	file  int    // index into the plan's
	in    *input // nil before it is opened
	fits  *shard.Detector
	read  int  // keys, from the start
	bytes int  // of keys and values, from the start
	done  bool // no more is to be read from the start
	found bool // a record that is no delete
}

// run looks at the heads of the files and then, if several functions fit and
// places are asked for, at their ends and middles, and at last reads on from
// their starts. It decides only between two rounds, in each of which a fixed
// number of keys is read, so that the answer does not depend on which file was
// read faster.
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

// round works on every file, and strikes out what does not fit any more. It
// does nothing if there is nothing left to find out.
func (s *sampler) round(work func(*sample) error) error {
	if len(s.fit) <= 1 {
		return nil
	}
	var g errgroup.Group
	g.SetLimit(sampleParallel)
	for _, f := range s.files {
		g.Go(func() error {
			return work(f)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, f := range s.files {
		left := f.fits.Candidates()
		s.fit = slices.DeleteFunc(s.fit, func(p shard.Partitioner) bool { return !slices.Contains(left, p) })
	}
	return nil
}

// start reads each file from its start until upTo of its keys are read.
func (s *sampler) start(ctx context.Context, upTo int) error {
	return s.round(func(f *sample) error { return s.look(ctx, f, upTo) })
}

// finished reports whether there is nothing left to read or to find out.
func (s *sampler) finished() bool {
	return len(s.fit) <= 1 || !slices.ContainsFunc(s.files, func(f *sample) bool { return !f.done })
}

// most is how many keys are read from the start of a file.
func (s *sampler) most(f *sample) int {
	if s.plan.Files[f.file].Size < sampleShort {
		return max(s.limit, sampleWhole)
	}
	return s.limit
}

// look reads on in a file until upTo of its keys are read.
func (s *sampler) look(ctx context.Context, f *sample, upTo int) (err error) {
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
		f.found = f.found || !f.in.deleted()
		f.read++
	}
	f.done = f.read < upTo || f.read == most
	return f.in.Err()
}

// read returns how many keys were read from the starts of the files, of those
// that the limit allows for.
func (s *sampler) read() int {
	n := 0
	for _, f := range s.files {
		n += min(f.read, s.limit)
	}
	return n
}

// found reports whether there is a record in any of the files.
func (s *sampler) found() bool {
	return slices.ContainsFunc(s.files, func(f *sample) bool { return f.found })
}

// close closes the files, and counts what was read of them. An error of
// closing one does not change what its keys have shown.
func (s *sampler) close() {
	for _, f := range s.files {
		if f.in != nil {
			s.l.metrics.Read(s.plan.DB, f.in.fetched(), int64(f.read))
			_ = f.in.close()
		}
	}
}
