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
)

// candidates returns the cuts that fit the sampled keys and are not refuted, in order of preference. The result
// depends only on the files and on plan.refuted. If several fit, it reads more until one is left or the budget is
// used up.
func (l *Loader) candidates(ctx context.Context, plan *Plan, names layout) ([]shard.Cut, error) {
	fit := names.detector()
	for _, p := range plan.refuted {
		fit.Refute(p)
	}
	budget := sampleRecords
	for _, group := range sampleGroups(len(plan.Files)) {
		if fit.Decided() || budget < len(group) {
			break
		}
		read, err := l.sampleGroup(ctx, plan, names, group, budget/len(group), fit)
		if err != nil {
			return nil, err
		}
		budget -= read
	}
	return fit.Candidates(), nil
}

// detect chooses the first candidate. If there is none, it chooses String, not aligned.
func (l *Loader) detect(ctx context.Context, plan *Plan, names layout) error {
	if names.whole == 1 {
		plan.Aligned = true // everything fits
		return nil
	}
	fit, err := l.candidates(ctx, plan, names)
	if err != nil {
		return err
	}
	if len(fit) > 0 {
		plan.Partitioner, plan.Partitions, plan.Aligned = fit[0].By, fit[0].Partitions, true
	}
	return nil
}

// cutBy plans by a partitioner that is configured. If the files are not cut by it and the names do not tell, every file is
// read; if the names tell that they are, a load fails at a record that is not.
func (l *Loader) cutBy(ctx context.Context, plan *Plan, names layout, by shard.Partitioner) error {
	plan.Partitioner, plan.Aligned = by, names.whole > 0
	if names.least == 0 || names.least > names.most {
		return nil
	}
	fit, err := l.candidates(ctx, plan, names)
	if err != nil {
		return err
	}
	if plan.Aligned {
		plan.Partitions = names.whole
	}
	for _, cut := range fit {
		if cut.By == by {
			plan.Partitions, plan.Aligned = cut.Partitions, true
			break
		}
	}
	return nil
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
