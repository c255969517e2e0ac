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
		a := aligned{job: j, partition: p, files: files[p], memory: j.opts.Memory / int64(workers)}
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

func (a *aligned) scan(s *scanner) func(context.Context, *stream) error {
	return func(ctx context.Context, out *stream) error {
		s.out.s = out
		return s.run(ctx, a.files)
	}
}

// onePass writes the records into the block as they come.
func (a *aligned) onePass(ctx context.Context, s *scanner) error {
	b, err := a.newBuilder(a.partition)
	if err != nil {
		return err
	}
	defer b.discard()
	err = pipe(ctx, a.scan(s), func(ctx context.Context, in *stream) error {
		up := ascending{add: b.add}
		if err := in.each(ctx, up.take); err != nil {
			return err
		}
		return up.finish()
	})
	if err != nil {
		return err
	}
	return b.publish()
}

// sorted writes the records into the block by way of an external sort.
func (a *aligned) sorted(ctx context.Context) error {
	sorter := blocks.NewSorter(blocks.SorterOptions{Memory: a.memory, Dir: a.dir.Temp()})
	defer sorter.Close()
	err := pipe(ctx, a.scan(a.scanner()), func(ctx context.Context, in *stream) error {
		return in.each(ctx, func(b *batch) error {
			defer b.release()
			for i := range b.records {
				r := &b.records[i]
				if err := sorter.Add(b.key(r), b.value(r), r.deleted); err != nil {
					return err
				}
			}
			return nil
		})
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
	add  func(key, value []byte) error
	b    *batch // which the record held back is in
	held *record
}

// take looks at all records of b, and releases b once nothing of it is held.
func (a *ascending) take(b *batch) error {
	for i := range b.records {
		r := &b.records[i]
		if a.held != nil {
			switch c := bytes.Compare(a.b.key(a.held), b.key(r)); {
			case c > 0:
				return errDescends
			case c < 0:
				if err := a.pass(); err != nil {
					return err
				}
			}
		}
		if a.b != b {
			a.b.release()
			a.b = b
		}
		a.held = r
	}
	return nil
}

func (a *ascending) pass() error {
	if a.held.deleted {
		return nil
	}
	return a.add(a.b.key(a.held), a.b.value(a.held))
}

// finish passes on the last record.
func (a *ascending) finish() error {
	if a.held == nil {
		return nil
	}
	err := a.pass()
	a.b.release()
	return err
}
