package extsort

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sequins/internal/fsys"
	"sequins/internal/offheap"
)

const (
	// MaxKey is the longest key that a [Sorter] takes, in bytes: the 64 KiB of a database's longest key, and a little in
	// front of it by which the records of several partitions are kept apart.
	MaxKey = 64<<10 + 8

	// MaxValue is the longest value in bytes.
	MaxValue = 1<<31 - 1
)

// MinMemory is the least memory that a [Sorter] works with, in bytes.
const MinMemory = 1 << 20

const (
	// minRunBuffer is the least room in which a run can be read: the longest key and a frame behind it.
	minRunBuffer = maxRecordHead + MaxKey + frameSize

	// maxRunBuffer is the most, in bytes: longer reads are no faster.
	maxRunBuffer = 1 << 20

	// maxRuns is how many runs are read at once, at most. It bounds the number of open files;
	// with 256 MiB of memory, it is reached at 64 GiB.
	maxRuns = 256

	// maxKeptValue is the length in bytes up to which the buffer for a large value is kept for
	// the next one.
	maxKeptValue = 1 << 20
)

// Options are the options of [New].
type Options struct {
	// Memory bounds the memory of the sorter, in bytes; less than [MinMemory] counts as
	// that. Beyond it goes the one value that is being yielded, where it is longer than 64 KiB
	// and comes from the disk.
	Memory int64

	// Dir is where runs are written, if the records do not fit into Memory. It must exist, and
	// should be one whose *.tmp files are removed after a crash.
	Dir string

	// FS is the file system that Dir is in; nil for that of the operating system.
	FS fsys.FS
}

// Sorter sorts records by key, bytewise, in bounded memory: what does not fit is written to
// sorted runs on the disk, which are merged at the end. Of records with the same key, the one that
// was added last wins; if it is a deletion, there is none.
//
// It is used as Add…, Finish, Merge, Close, by one goroutine at a time, and starts none. Close may be called again.
type Sorter struct {
	fs        fsys.FS
	dir       string
	memory    int
	frameSize int // these two differ in tests
	minBuffer int
	maxRuns   int

	arena arena
	frame []byte // the buffer of run writers
	runs  []run  // the older first
	err   error  // which ends everything
}

// New returns a sorter, which must be closed. It takes memory when the first record is added.
func New(o Options) *Sorter {
	s := &Sorter{fs: cmp.Or(o.FS, fsys.OS), dir: o.Dir, frameSize: frameSize, minBuffer: minRunBuffer, maxRuns: maxRuns}
	s.memory = int(max(o.Memory, MinMemory)) - frameSize // for the writer
	return s
}

// maxFanIn is how many runs can be read at once.
func (s *Sorter) maxFanIn() int { return min(s.maxRuns, len(s.arena.mem)/s.minBuffer) }

// Add adds a record, or the deletion of all records with this key that were added before. It keeps
// neither key nor value, which have at most [MaxKey] and [MaxValue] bytes. An error ends the sorter, and its runs are removed.
func (s *Sorter) Add(key, value []byte, deleted bool) error {
	if s.err != nil {
		return s.err
	}
	if deleted {
		value = nil
	}
	size := maxRecordHead + len(key) + len(value)
	if !s.arena.fits(size) {
		if err := s.makeRoom(); err != nil {
			return s.fail(err)
		}
		if !s.arena.fits(size) {
			return s.fail(s.addAlone(key, value, deleted))
		}
	}
	s.arena.add(key, value, deleted)
	return nil
}

// makeRoom empties the arena, or makes it if there is none yet.
func (s *Sorter) makeRoom() error {
	if s.arena.mem != nil {
		return s.spill()
	}
	mem, err := offheap.Map(s.memory &^ 7)
	if err != nil {
		return fmt.Errorf("memory for sorting, which [load] memory_limit limits: %w", err)
	}
	s.arena.mem, s.frame = mem, make([]byte, 0, s.frameSize)
	return nil
}

// fail ends the sorter if there is an error: the disk may be full, and its runs are of no use.
func (s *Sorter) fail(err error) error {
	if err != nil {
		s.err = errors.Join(err, s.removeRuns())
	}
	return s.err
}

// spill writes the records in the arena to a run.
func (s *Sorter) spill() error {
	if s.arena.n == 0 {
		return nil
	}
	s.arena.sort()
	r, err := s.writeMerged(context.Background(), nil)
	if err != nil {
		return err
	}
	s.arena.used, s.arena.n = 0, 0
	s.runs = append(s.runs, r)
	return nil
}

// addAlone writes a record that does not fit into the arena to a run of its own.
func (s *Sorter) addAlone(key, value []byte, deleted bool) error {
	r, err := s.writeRun(func(w *runWriter) error {
		if err := w.write(append(appendHead(nil, len(key), len(value), deleted), key...)); err != nil {
			return err
		}
		return w.write(value)
	})
	if err == nil {
		s.runs = append(s.runs, r)
	}
	return err
}

// writeRun makes a run of what write gives to its writer.
func (s *Sorter) writeRun(write func(w *runWriter) error) (run, error) {
	w, err := newRunWriter(s.fs, s.dir, s.frame)
	if err != nil {
		return run{}, err
	}
	var r run
	if err = write(w); err == nil {
		r, err = w.finish()
	}
	if err != nil {
		return run{}, errors.Join(err, w.abort())
	}
	return r, nil
}

// Finish sorts what has been added, for Merge. Nothing can be added any more.
func (s *Sorter) Finish(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	if len(s.runs) == 0 {
		s.arena.sort()
		return nil
	}
	if err := s.spill(); err != nil {
		return s.fail(err)
	}
	return s.fail(s.reduce(ctx))
}

// Close removes the runs and gives the memory back. What Merge has yielded is not valid any more.
func (s *Sorter) Close() error {
	err := s.removeRuns()
	if s.arena.mem != nil {
		err = errors.Join(err, offheap.Unmap(s.arena.mem))
	}
	s.arena = arena{}
	return err
}

func (s *Sorter) removeRuns() error {
	runs := s.runs
	s.runs = nil
	return s.remove(runs)
}

func (s *Sorter) remove(runs []run) error {
	var errs []error
	for _, r := range runs {
		if err := s.fs.Remove(r.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
