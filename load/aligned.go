package load

import (
	"bytes"
	"context"
	"errors"

	"sequins/blocks"
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
	return parallel(ctx, workers, len(todo), func(ctx context.Context, i int) error {
		p := todo[i]
		a := aligned{
			job: j, partition: p, files: files[p], memory: j.opts.Memory / int64(workers),
			piped: workers < j.opts.workers(),
		}
		return a.load(ctx)
	})
}

// filesOf returns the files of each of the partitions, in the order of their
// names. There can be none, and several if they are Sparkey's.
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

// aligned makes one partition from its own files.
type aligned struct {
	*job
	partition int
	files     []int
	memory    int64 // for sorting
	piped     bool  // there are cores without a partition of their own
}

// errDescends ends a first pass over files that are not sorted.
var errDescends = errors.New("keys descend")

func (a *aligned) load(ctx context.Context) error {
	s := a.scanner()
	err := a.onePass(ctx, s)
	if errors.Is(err, errDescends) {
		a.progress.undo(s.told)
		err = a.sorted(ctx)
	}
	return err
}

func (a *aligned) scanner() *scanner {
	return &scanner{job: a.job, router: router{
		by: a.plan.Partitioner, partitions: a.plan.Partitions, only: a.partition,
	}}
}

// onePass writes the records into the block as they come.
func (a *aligned) onePass(ctx context.Context, s *scanner) error {
	b, err := a.newBuilder(a.partition)
	if err != nil {
		return err
	}
	defer b.discard()
	up := ascending{add: b.add}
	if err := s.run(ctx, a.files, a.piped, up.take); err != nil {
		return err
	}
	if err := up.finish(); err != nil {
		return err
	}
	return b.publish()
}

// sorted writes the records into the block by way of an external sort.
func (a *aligned) sorted(ctx context.Context) error {
	sorter := blocks.NewSorter(blocks.SorterOptions{Memory: a.memory, Dir: a.dir.Temp()})
	defer sorter.Close()
	err := a.scanner().run(ctx, a.files, a.piped, func(_ slot, key, value []byte, deleted bool) error {
		return sorter.Add(key, value, deleted)
	})
	if err != nil {
		return err
	}
	b, err := a.newBuilder(a.partition)
	if err != nil {
		return err
	}
	defer b.discard()
	if err := sorter.Merge(ctx, b.add); err != nil {
		return err
	}
	return b.publish()
}

// ascending passes on records whose keys ascend. It holds each back until the
// next has come, as of several with one key only the last counts.
type ascending struct {
	add        func(key, value []byte) error
	key, value []byte // the record held back
	held       bool   // whether there is one
	deleted    bool   // whether it is a delete
}

// take is a sink.
func (a *ascending) take(_ slot, key, value []byte, deleted bool) error {
	if a.held {
		switch c := bytes.Compare(a.key, key); {
		case c > 0:
			return errDescends
		case c < 0:
			if err := a.finish(); err != nil {
				return err
			}
		}
	}
	a.key = append(a.key[:0], key...)
	a.value = append(a.value[:0], value...)
	a.held, a.deleted = true, deleted
	return nil
}

// finish passes on the record held back.
func (a *ascending) finish() error {
	if !a.held || a.deleted {
		return nil
	}
	err := a.add(a.key, a.value)
	if cap(a.value) > maxKept {
		a.value = nil
	}
	return err
}
