package load

import (
	"context"
	"slices"

	"sequins/shard"
)

// How much of a version is looked at to find its partitioner. These numbers
// are part of the contract between nodes: with other ones, a node could come
// to another answer.
const (
	sampleFiles   = 32       // opened at once, spread evenly
	sampleFirst   = 64       // keys read from each file at first
	sampleGrowth  = 4        // factor for each further round
	sampleRecords = 100_000  // in total
	sampleBytes   = 64 << 20 // of keys and values, in total
	sampleMost    = 1024     // files opened if they have few records

	// In files of at least sampleProbed bytes with sync markers, the end and three places in between
	// are sampled, too. The end is the last sampleTail bytes at most, which is more than the distance
	// of Hadoop's sync markers.
	sampleProbed = 64 << 10
	sampleTail   = 256 << 10
	probeKeys    = 1024    // per place
	probeTail    = 1 << 16 // keys at the end, and in files of less than sampleSmall bytes
	sampleSmall  = 1 << 20
	probeBytes   = 8 << 20 // of keys and values, per place

	// Files of less than sampleShort bytes are read from their start up to sampleWhole keys, if several
	// functions still fit.
	sampleShort = 512 << 10
	sampleWhole = 1 << 14
)

// candidates returns the functions that fit the sampled keys, in order of preference. The result
// depends only on the files. If several functions fit, it reads more until one is left or the budget is
// used up.
func (l *Loader) candidates(ctx context.Context, plan *Plan) ([]shard.Partitioner, error) {
	fit := shard.Partitioners()
	budget := sampleRecords
	for i, group := range sampleGroups(len(plan.Files)) {
		if len(fit) <= 1 || budget < len(group) {
			break
		}
		s := sampler{l: l, plan: plan, fit: fit, limit: budget / len(group), bytes: sampleBytes / len(group)}
		for _, file := range group {
			s.files = append(s.files, &sample{file: file, fits: shard.NewDetector(plan.Partitions)})
		}
		if err := s.run(ctx, i == 0); err != nil {
			return nil, err
		}
		fit = s.fit
		plan.sampled = plan.sampled || s.found()
		budget -= s.read()
	}
	return fit, nil
}

// detect chooses the first candidate that is not refuted. If there is none, it returns String, not
// aligned.
func (l *Loader) detect(ctx context.Context, plan *Plan) (_ shard.Partitioner, aligned bool, err error) {
	if plan.Partitions == 1 {
		return shard.String, true, nil // everything fits
	}
	fit, err := l.candidates(ctx, plan)
	if err != nil {
		return 0, false, err
	}
	for _, p := range fit {
		if !slices.Contains(plan.Refuted, p) {
			return p, true, nil
		}
	}
	return shard.String, false, nil
}

// sampleGroups returns the indices of n files in groups that are sampled together: first files spread
// evenly, then the others, in case the first ones have too few records.
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
