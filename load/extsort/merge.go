package extsort

import (
	"bytes"
	"context"
	"errors"
)

// merger reads several runs at once and shows their records in ascending order, of equal keys the
// one of the newest run only. It finds the next in a tree of losers: each inner node holds the run
// that lost there, and the winner of all is above the root.
type merger struct {
	runs []*runReader // the older first
	tree []int        // tree[0] is the winner; node n has the children 2n and 2n+1, leaf i is node len(runs)+i
	key  []byte       // a copy of the current record's
}

// openMerger opens the runs. It shares out buffer among them.
func openMerger(ctx context.Context, s *Sorter, runs []run, buffer []byte) (*merger, error) {
	m := &merger{tree: make([]int, len(runs))}
	size := min(len(buffer)/len(runs), maxRunBuffer)
	for i, r := range runs {
		rr, err := openRun(ctx, s.fs, r, s.frameSize, buffer[i*size:(i+1)*size:(i+1)*size])
		if err != nil {
			return nil, also(err, m.close())
		}
		m.runs = append(m.runs, rr)
	}
	m.tree[0] = m.build(1)
	return m, nil
}

func (m *merger) close() error {
	var errs []error
	for _, r := range m.runs {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

// build plays the matches below a node and returns the winner.
func (m *merger) build(node int) int {
	if node >= len(m.runs) {
		return node - len(m.runs)
	}
	a, b := m.build(2*node), m.build(2*node+1)
	if m.less(b, a) {
		a, b = b, a
	}
	m.tree[node] = b
	return a
}

// less says whether the record of run a comes before that of run b: by key, then the newer.
func (m *merger) less(a, b int) bool {
	x, y := m.runs[a], m.runs[b]
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

// current is the run that has the current record.
func (m *merger) current() *runReader { return m.runs[m.tree[0]] }

// advance moves on the run that has the current record.
func (m *merger) advance() error {
	winner := m.tree[0]
	if err := m.runs[winner].next(); err != nil {
		return err
	}
	for node := (winner + len(m.runs)) / 2; node > 0; node /= 2 {
		if m.less(m.tree[node], winner) {
			winner, m.tree[node] = m.tree[node], winner
		}
	}
	m.tree[0] = winner
	return nil
}

// each calls do for the newest record of each key. In it, m.key is the key.
func (m *merger) each(do func(r *runReader) error) error {
	for r := m.current(); !r.done; r = m.current() {
		m.key = append(m.key[:0], r.key...)
		if err := do(r); err != nil {
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

// yieldMerged merges runs and yields the records that are not deletions.
func (s *Sorter) yieldMerged(ctx context.Context, yield func(key, value []byte) error) error {
	m, err := openMerger(ctx, s, s.runs, s.arena.mem)
	if err != nil {
		return err
	}
	var buffer []byte
	err = m.each(func(r *runReader) error {
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
	return also(err, m.close())
}

// value reads a large value into buffer, or into a new one where that is too small.
func (r *runReader) value(buffer []byte) ([]byte, error) {
	if r.left > cap(buffer) {
		buffer = make([]byte, 0, r.left)
	}
	err := r.copyValue(func(part []byte) error {
		buffer = append(buffer, part...)
		return nil
	})
	return buffer, err
}

// mergeRuns merges some runs into one. Deletions are kept, as they may hide records of older runs,
// unless the runs are the oldest.
func (s *Sorter) mergeRuns(ctx context.Context, runs []run, oldest bool) (run, error) {
	m, err := openMerger(ctx, s, runs, s.arena.mem)
	if err != nil {
		return run{}, err
	}
	merged, err := s.writeRun(func(w *runWriter) error {
		return m.each(func(r *runReader) error {
			if oldest && r.head.deleted {
				return nil
			}
			return w.copyRecord(r)
		})
	})
	if cerr := m.close(); err == nil && cerr != nil {
		return run{}, also(cerr, s.remove([]run{merged}))
	} else if err != nil {
		return run{}, also(err, cerr)
	}
	return merged, nil
}

// copyRecord writes the current record of r.
func (w *runWriter) copyRecord(r *runReader) error {
	if err := w.add(r.rec, nil); err != nil {
		return err
	}
	return r.copyValue(w.write)
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
		merged, err := s.mergeRuns(ctx, s.runs[from:from+n], from == 0)
		if err != nil {
			return err
		}
		old := append([]run(nil), s.runs[from:from+n]...)
		s.runs[from] = merged
		s.runs = append(s.runs[:from+1], s.runs[from+n:]...)
		if err := s.remove(old); err != nil {
			return err
		}
	}
	return nil
}
