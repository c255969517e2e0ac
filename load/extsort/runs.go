package extsort

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"sequins/internal/fsys"
	"sequins/internal/pagecache"
)

// A run is a temporary file in which a [Sorter] keeps records in ascending order of their keys, no
// key twice: records as they lie in the arena, one behind the other.
//
// The checksum of each frameSize bytes stays in memory, as the run does not outlive its sorter. So a
// part of the file that lies where another belongs is damage too.

// frameSize is how many bytes of a run have a checksum together.
const frameSize = 64 << 10

// runSuffix makes the sweep at start-up know the runs of a process that was killed.
const runSuffix = ".tmp"

// ErrCorrupt is wrapped by the error for a run whose bytes are not those that were written.
var ErrCorrupt = errors.New("corrupt")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// runNames counts the runs of this process, as sorters may share a directory.
var runNames atomic.Uint64

type run struct {
	name string
	size int64    // bytes
	sums []uint32 // CRC-32C of each frame
}

type runWriter struct {
	fs    fsys.FS
	file  fsys.File
	frame []byte // what of the current frame waits to be written
	run   run
	cache pagecache.Window
}

// newRunWriter makes a file for a run in dir. The capacity of the buffer is the size of a frame.
func newRunWriter(disk fsys.FS, dir string, buffer []byte) (*runWriter, error) {
	f, err := fsys.File(nil), fs.ErrExist
	for errors.Is(err, fs.ErrExist) {
		f, err = disk.Create(filepath.Join(dir, "run-"+strconv.FormatUint(runNames.Add(1), 10)+runSuffix))
	}
	if err != nil {
		return nil, fmt.Errorf("making a sort run: %w", err)
	}
	return &runWriter{fs: disk, file: f, frame: buffer[:0], run: run{name: f.Name()}, cache: pagecache.Of(f, 0)}, nil
}

// write appends a part of a record.
func (w *runWriter) write(part []byte) error {
	for len(part) > 0 {
		n := min(len(part), cap(w.frame)-len(w.frame))
		w.frame = append(w.frame, part[:n]...)
		part = part[n:]
		if len(w.frame) == cap(w.frame) {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *runWriter) flush() error {
	if _, err := w.file.Write(w.frame); err != nil {
		return fmt.Errorf("writing a sort run: %w", err)
	}
	w.run.sums = append(w.run.sums, crc32.Checksum(w.frame, castagnoli))
	w.run.size += int64(len(w.frame))
	w.cache.Written(w.run.size)
	w.frame = w.frame[:0]
	return nil
}

func (w *runWriter) finish() (run, error) {
	if len(w.frame) > 0 {
		if err := w.flush(); err != nil {
			return run{}, err
		}
	}
	w.cache.Finished(w.run.size)
	if err := w.file.Close(); err != nil {
		return run{}, fmt.Errorf("writing a sort run: %w", err)
	}
	return w.run, nil
}

func (w *runWriter) abort() error {
	err := w.file.Close()
	if errors.Is(err, fs.ErrClosed) { // it was finish that failed
		err = nil
	}
	return errors.Join(err, w.fs.Remove(w.run.name))
}
