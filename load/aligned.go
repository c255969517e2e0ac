package load

import (
	"context"
	"errors"

	"sequins/blocks"
	"sequins/internal/parallel"
)

// loadAligned makes each partition from its own files.
func (j *job) loadAligned(ctx context.Context, todo []int) error {
	files := j.filesOf(todo)
	var all []int
	for _, p := range todo {
		all = append(all, files[p]...)
	}
	j.expect(all)
	workers := min(j.opts.workers(), len(todo))
	return parallel.Run(ctx, workers, len(todo), func(ctx context.Context, i int) error {
		p := todo[i]
		a := aligned{
			job: j, partition: p, files: files[p], memory: j.opts.Memory / int64(workers),
			piped: workers < j.opts.workers(),
		}
		return a.load(ctx)
	})
}

// filesOf returns the files of each partition, ordered by name. A partition of Sparkey logs may have
// none or several.
func (j *job) filesOf(partitions []int) map[int][]int {
	files := make(map[int][]int, len(partitions))
	for _, p := range partitions {
		files[p] = nil
	}
	for i, p := range j.plan.parts {
		if _, ok := files[p]; ok {
			files[p] = append(files[p], i)
		}
	}
	return files
}

// aligned loads one partition from its own files.
type aligned struct {
	*job
	partition int
	files     []int
	memory    int64 // for sorting
	piped     bool  // reading gets its own goroutine, because there are spare cores
}

// errDeletes ends the first pass over files that contain deletes.
var errDeletes = errors.New("records are deleted")

func (a *aligned) load(ctx context.Context) error {
	s := &scanner{job: a.job, only: a.partition}
	err := a.onePass(ctx, s)
	if errors.Is(err, blocks.ErrOrder) || errors.Is(err, errDeletes) {
		a.progress.add(tally{files: -s.reported.files, bytes: -s.reported.bytes, records: -s.reported.records}) // the scan is repeated
		a.tolerance.forget(s.leftOut)
		err = a.sorted(ctx)
	}
	return err
}

// onePass writes the records into the block in the order of the file. It fails with blocks.ErrOrder if
// they are not sorted, or if two have the same key.
func (a *aligned) onePass(ctx context.Context, s *scanner) error {
	b, err := a.newBuilder(a.partition)
	if err != nil {
		return err
	}
	defer b.discard()
	err = s.run(ctx, a.files, a.piped, func(_ slot, key, value []byte, deleted bool) error {
		if deleted {
			return errDeletes
		}
		return b.add(key, value)
	})
	if err != nil {
		return err
	}
	return b.publish()
}

// sorted writes the records into the block through an external sort.
func (a *aligned) sorted(ctx context.Context) error {
	only := []int{a.partition}
	r := routed{job: a.job, todo: only, memory: a.memory, piped: a.piped, places: make([]place, 1), lanes: [][]int{a.files}, shards: [][]int{only}}
	return r.load(ctx)
}
