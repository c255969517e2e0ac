package extsort

import (
	"bytes"
	"context"
	"errors"
	"slices"
)

// merger reads from several readers at once and shows their records in ascending order, of equal keys the
// one of the newest reader only. It finds the next in a tree of losers: each inner node holds the reader
// that lost there, and the winner of all is above the root.
type merger struct {
	readers []*reader // the older first
	tree    []int     // tree[0] is the winner; node n has the children 2n and 2n+1, leaf i is node len(readers)+i
	key     []byte    // a copy of the current record's
}

// merge calls do for the newest record of each key, and closes the readers. In it, m.key is the key.
func merge(readers []*reader, do func(m *merger, r *reader) error) (err error) {
	m := &merger{readers: readers, tree: make([]int, len(readers))}
	for _, r := range readers {
		if err == nil {
			err = r.next()
		}
	}
	if err == nil {
		m.tree[0] = m.build(1)
		err = m.each(do)
	}
	return errors.Join(err, closeAll(readers))
}

func closeAll(readers []*reader) error {
	var errs []error
	for _, r := range readers {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

// build plays the matches below a node and returns the winner.
func (m *merger) build(node int) int {
	if node >= len(m.readers) {
		return node - len(m.readers)
	}
	a, b := m.build(2*node), m.build(2*node+1)
	if m.less(b, a) {
		a, b = b, a
	}
	m.tree[node] = b
	return a
}

// less reports whether the record of reader a comes before the record of reader b. Of equal keys, the record of the newer reader is first.
func (m *merger) less(a, b int) bool {
	x, y := m.readers[a], m.readers[b]
	switch {
	case x.done || y.done:
		return !x.done
	case x.prefix != y.prefix:
		return x.prefix < y.prefix
	}
	if c := bytes.Compare(x.key, y.key); c != 0 {
		return c < 0
	}
	return a > b
}

func (m *merger) current() *reader { return m.readers[m.tree[0]] }

// advance moves on the reader that has the current record.
func (m *merger) advance() error {
	winner := m.tree[0]
	if err := m.readers[winner].next(); err != nil {
		return err
	}
	for node := (winner + len(m.readers)) / 2; node > 0; node /= 2 {
		if m.less(m.tree[node], winner) {
			winner, m.tree[node] = m.tree[node], winner
		}
	}
	m.tree[0] = winner
	return nil
}

func (m *merger) each(do func(m *merger, r *reader) error) error {
	for r := m.current(); !r.done; r = m.current() {
		m.key = append(m.key[:0], r.key...)
		if err := do(m, r); err != nil {
			return err
		}
		if err := m.advance(); err != nil {
			return err
		}
		for r = m.current(); !r.done && bytes.Equal(r.key, m.key); r = m.current() {
			if err := m.advance(); err != nil {
				return err
			}
		}
	}
	return nil
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
	return merge(readers, func(m *merger, r *reader) error {
		if r.head.deleted {
			return nil
		}
		if r.left == 0 {
			return yield(m.key, r.rec[r.head.value():])
		}
		value, err := r.value(buffer)
		if err != nil {
			return err
		}
		if cap(value) <= maxKeptValue {
			buffer = value[:0]
		}
		return yield(m.key, value)
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
		return merge(readers, func(_ *merger, r *reader) error {
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
