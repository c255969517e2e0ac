package extsort

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"sequins/internal/fsys"
)

// A run is a temporary file in which a [Sorter] keeps records in ascending order of their keys, no
// key twice. Its numbers are little-endian.
//
//	run     = frame*
//	frame   = length:u32 crc:u32 payload:u8[length]    crc of the payload and its ordinal: see checksum
//	payload = record* | part of a value
//
// Records are those of the arena, and lie in one frame each. One that would not fit into a frame
// lies in it, as its last, only up to its key; its value follows in frames of its own, so that it
// can be passed over, or copied, without being in memory as a whole.
const (
	frameHead = 8

	// frameSize is the length of a payload in bytes, unless a single key needs more.
	frameSize = 64 << 10
)

// runSuffix makes the sweep at start-up know the runs of a process that was killed.
const runSuffix = ".tmp"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC-32C of the payload of a frame. The ordinal of the frame in the run makes one that lies where another
// belongs damage too.
func checksum(payload []byte, ordinal uint32) uint32 {
	return crc32.Checksum(payload, castagnoli) ^ ordinal*0x9e3779b1
}

// runNames counts the runs of this process, as sorters may share a directory.
var runNames atomic.Uint64

// run is a finished run.
type run struct {
	name    string
	size    int64 // bytes
	records int64
}

// runWriter writes a run.
type runWriter struct {
	fs      fsys.FS
	file    fsys.File
	limit   int // frameSize, except in tests
	frame   []byte
	ordinal uint32
	run     run
	cache   cacheWindow
}

// newRunWriter makes a file for a run in dir. The buffer has room for the longest frame.
func newRunWriter(fs fsys.FS, dir string, limit int, buffer []byte) (*runWriter, error) {
	f, err := createRun(fs, dir)
	if err != nil {
		return nil, fmt.Errorf("making a sort run: %w", err)
	}
	return &runWriter{
		fs: fs, file: f, limit: limit, frame: buffer[:frameHead], run: run{name: f.Name()}, cache: newCacheWindow(f),
	}, nil
}

func createRun(fsys fsys.FS, dir string) (fsys.File, error) {
	for {
		name := "run-" + strconv.FormatUint(runNames.Add(1), 10) + runSuffix
		f, err := fsys.Create(filepath.Join(dir, name))
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// add writes a record, given as what it consists of up to the value, and the value.
func (w *runWriter) add(headAndKey, value []byte) error {
	size := len(headAndKey) + len(value)
	if size > w.limit {
		if err := w.addLarge(headAndKey); err != nil {
			return err
		}
		if err := w.writeValue(value); err != nil {
			return err
		}
		return w.flush()
	}
	if len(w.frame)-frameHead+size > w.limit {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.frame = append(append(w.frame, headAndKey...), value...)
	w.run.records++
	return nil
}

// addLarge writes what a record consists of up to the value, where all of it does not fit into a
// frame. The value is to be written next, with writeValue, and ended with flush.
func (w *runWriter) addLarge(headAndKey []byte) error {
	if len(w.frame)-frameHead+len(headAndKey) > w.limit {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.frame = append(w.frame, headAndKey...)
	w.run.records++
	return w.flush()
}

// writeValue writes a part of the value of a large record.
func (w *runWriter) writeValue(part []byte) error {
	for len(part) > 0 {
		n := min(len(part), w.limit-(len(w.frame)-frameHead))
		w.frame = append(w.frame, part[:n]...)
		part = part[n:]
		if len(w.frame)-frameHead == w.limit {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush ends the frame.
func (w *runWriter) flush() error {
	payload := w.frame[frameHead:]
	if len(payload) == 0 {
		return nil
	}
	binary.LittleEndian.PutUint32(w.frame, uint32(len(payload)))
	binary.LittleEndian.PutUint32(w.frame[4:], checksum(payload, w.ordinal))
	if _, err := w.file.Write(w.frame); err != nil {
		return fmt.Errorf("writing a sort run: %w", err)
	}
	w.ordinal++
	w.run.size += int64(len(w.frame))
	w.cache.written(w.run.size)
	w.frame = w.frame[:frameHead]
	return nil
}

// finish closes the run and returns it.
func (w *runWriter) finish() (run, error) {
	if err := w.flush(); err != nil {
		return run{}, err
	}
	w.cache.finished(w.run.size)
	if err := w.file.Close(); err != nil {
		return run{}, fmt.Errorf("writing a sort run: %w", err)
	}
	return w.run, nil
}

// abort removes the run.
func (w *runWriter) abort() error {
	err := w.file.Close()
	if errors.Is(err, fs.ErrClosed) { // it was finish that failed
		err = nil
	}
	return errors.Join(err, w.fs.Remove(w.run.name))
}
