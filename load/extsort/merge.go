package extsort

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"sequins/internal/merge"
)

// eachNewest calls do for the newest record of each key, in ascending order of the keys, and closes the readers, of which the older come
// first. key is a copy.
func eachNewest(readers []*reader, do func(key []byte, r *reader) error) (err error) {
	defer func() { err = errors.Join(err, closeAll(readers)) }()
	t := merge.Tree[*reader]{Leaves: make([]merge.Leaf[*reader], len(readers))}
	for i, r := range readers {
		t.Leaves[i].Source = r
		if err := step(&t.Leaves[i]); err != nil {
			return err
		}
	}
	t.Build()
	var key []byte
	begun := false
	for l := t.Winner(); l != nil; l = t.Winner() {
		if !begun || !bytes.Equal(l.Key, key) {
			begun, key = true, append(key[:0], l.Key...)
			if err := do(key, l.Source); err != nil {
				return err
			}
		}
		if err := step(l); err != nil {
			return err
		}
		t.Replay(t.First())
	}
	return nil
}

// step moves a leaf to the next record of its reader.
func step(l *merge.Leaf[*reader]) error {
	err := l.Source.next()
	l.Done = l.Source.done
	l.Set(l.Source.key)
	return err
}

func closeAll(readers []*reader) error {
	var errs []error
	for _, r := range readers {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

// Merge yields the records of sorters that are finished in ascending order of their keys, each key once: of several records, that
// of the last sorter. Key and value are valid until yield returns. An error of yield, and the end of the context, end Merge
// with that error. Merge can be called once.
func Merge(ctx context.Context, sorters []*Sorter, yield func(key, value []byte) error) error {
	var readers []*reader
	for _, s := range sorters {
		more, err := s.open(ctx, s.runs)
		if err != nil {
			return errors.Join(err, closeAll(readers))
		}
		readers = append(readers, more...)
	}
	var buffer []byte
	return eachNewest(readers, func(key []byte, r *reader) error {
		if r.head.deleted {
			return nil
		}
		if r.left == 0 {
			return yield(key, r.rec[r.head.value():])
		}
		value, err := r.value(buffer)
		if err != nil {
			return err
		}
		if cap(value) <= maxKeptValue {
			buffer = value[:0]
		}
		return yield(key, value)
	})
}

// open returns readers of runs, the older first, among which it shares out the memory of the arena. Without runs, it returns one of the
// arena.
func (s *Sorter) open(ctx context.Context, runs []run) (readers []*reader, err error) {
	if len(runs) == 0 {
		return []*reader{{ctx: ctx, arena: &s.arena, entries: s.arena.entries()}}, nil
	}
	size := min(len(s.arena.mem)/len(runs), maxRunBuffer)
	for i, r := range runs {
		rr, err := openRun(ctx, s.fs, r, s.frameSize, s.arena.mem[i*size:(i+1)*size:(i+1)*size])
		if err != nil {
			return nil, errors.Join(err, closeAll(readers))
		}
		readers = append(readers, rr)
	}
	return readers, nil
}

// value reads a large value into buffer, or into a new one where that is too small.
func (r *reader) value(buffer []byte) ([]byte, error) {
	if r.left > cap(buffer) {
		buffer = make([]byte, 0, r.left)
	}
	err := r.copyValue(func(part []byte) error {
		buffer = append(buffer, part...)
		return nil
	})
	return buffer, err
}

// writeMerged makes a run of others, or of the arena if there are none. Deletions are kept, as they may hide older records.
func (s *Sorter) writeMerged(ctx context.Context, runs []run) (run, error) {
	return s.writeRun(func(w *runWriter) error {
		readers, err := s.open(ctx, runs)
		if err != nil {
			return err
		}
		return eachNewest(readers, func(_ []byte, r *reader) error {
			if err := w.write(r.rec); err != nil {
				return err
			}
			return r.copyValue(w.write)
		})
	})
}

// reduce merges runs until there are few enough to be read at once. Only neighbours are merged, so that the runs stay in the order
// of their age; no more than necessary, and those that are merged already only when all others are.
func (s *Sorter) reduce(ctx context.Context) error {
	max := s.maxFanIn()
	for from := 0; len(s.runs) > max; from++ {
		n := min(max, len(s.runs)-max+1)
		if from+n > len(s.runs) {
			from = 0
		}
		merged, err := s.writeMerged(ctx, s.runs[from:from+n])
		if err != nil {
			return err
		}
		old := slices.Clone(s.runs[from : from+n])
		s.runs = slices.Replace(s.runs, from, from+n, merged)
		if err := s.remove(old); err != nil {
			return err
		}
	}
	return nil
}
