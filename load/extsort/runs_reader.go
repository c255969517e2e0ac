package extsort

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"sequins/internal/fsys"
)

// runReader reads a run, record by record, through a buffer that it is given. Its fields tell of
// the current record; what they refer to is valid until the next one is read.
type runReader struct {
	ctx     context.Context
	file    fsys.File
	run     run
	limit   int    // as that of the writer
	buf     []byte // holds at least one frame
	start   int    // buf[start:end] is read and not yet used
	end     int
	pos     int64 // in the file, of buf[end]
	frame   []byte
	ordinal uint32
	seen    int64 // records
	cache   cacheWindow

	done   bool
	key    []byte
	prefix uint64 // of key
	rec    []byte // the record, as far as it lies in the frame with its key
	head   recordHead
	left   int // bytes of a large value that are still in the file
}

// openRun opens a run and reads its first record.
func openRun(ctx context.Context, fs fsys.FS, r run, limit int, buf []byte) (*runReader, error) {
	f, err := fs.Open(r.name)
	if err != nil {
		return nil, fmt.Errorf("opening a sort run: %w", err)
	}
	rr := &runReader{ctx: ctx, file: f, run: r, limit: limit, buf: buf, cache: newCacheWindow(f)}
	if err := rr.next(); err != nil {
		return nil, also(err, f.Close())
	}
	return rr, nil
}

// close closes the file, which stays.
func (r *runReader) close() error { return r.file.Close() }

func (r *runReader) corrupt(reason string) error {
	return fmt.Errorf("%s: frame %d at offset %d: %s: %w", r.run.name, r.ordinal, r.offset(), reason, ErrCorrupt)
}

// offset is the position in the file of what is used next.
func (r *runReader) offset() int64 { return r.pos - int64(r.end-r.start) }

// next goes to the next record. After the last, done is true.
func (r *runReader) next() error {
	if err := r.skipValue(); err != nil {
		return err
	}
	if len(r.frame) == 0 {
		if r.offset() == r.run.size {
			return r.finish()
		}
		if err := r.nextFrame(); err != nil {
			return err
		}
	}
	return r.parse()
}

func (r *runReader) finish() error {
	if r.seen != r.run.records {
		return r.corrupt(fmt.Sprintf("%d records, and %d were written", r.seen, r.run.records))
	}
	r.done, r.key, r.rec = true, nil, nil
	return nil
}

// parse takes the next record from the frame.
func (r *runReader) parse() error {
	head, ok := parseHead(r.frame)
	if !ok {
		return r.corrupt("bad record")
	}
	n := head.size()
	if n > r.limit {
		n, r.left = head.value(), head.valueLen
	}
	if n > len(r.frame) || r.left > 0 && n != len(r.frame) {
		return r.corrupt("record crosses the end of its frame")
	}
	if r.left > 0 && r.valueSize() > r.run.size-r.offset() {
		return r.corrupt("value crosses the end of the run")
	}
	r.head, r.rec, r.frame = head, r.frame[:n], r.frame[n:]
	r.key = r.rec[head.head:head.value()]
	r.prefix = prefix(r.key)
	r.seen++
	return nil
}

// nextFrame reads and verifies a frame.
func (r *runReader) nextFrame() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if err := r.fill(frameHead); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(r.buf[r.start:])
	crc := binary.LittleEndian.Uint32(r.buf[r.start+4:])
	if n == 0 || int64(n) > int64(len(r.buf)-frameHead) {
		return r.corrupt("bad frame length")
	}
	if err := r.fill(frameHead + int(n)); err != nil {
		return err
	}
	frame := r.buf[r.start+frameHead : r.start+frameHead+int(n)]
	if checksum(frame, r.ordinal) != crc {
		return r.corrupt("checksum mismatch")
	}
	r.frame = frame
	r.start += frameHead + int(n)
	r.ordinal++
	return nil
}

// fill reads on until n bytes are in the buffer.
func (r *runReader) fill(n int) error {
	if r.end-r.start >= n {
		return nil
	}
	if int64(n) > r.run.size-r.offset() {
		return r.corrupt("frame crosses the end of the run")
	}
	r.end = copy(r.buf, r.buf[r.start:r.end])
	r.start = 0
	want := min(int64(len(r.buf)-r.end), r.run.size-r.pos)
	got, err := r.file.ReadAt(r.buf[r.end:r.end+int(want)], r.pos)
	r.end += got
	r.pos += int64(got)
	if err != nil && err != io.EOF {
		return fmt.Errorf("reading a sort run: %w", err)
	}
	if r.end < n {
		return r.corrupt("cut short")
	}
	r.cache.used(r.offset())
	return nil
}

// copyValue gives the value of a large record to write, frame by frame. It is then gone.
func (r *runReader) copyValue(write func(part []byte) error) error {
	for r.left > 0 {
		if err := r.nextFrame(); err != nil {
			return err
		}
		if len(r.frame) != min(r.left, r.limit) {
			return r.corrupt("value in frames of a wrong length")
		}
		r.left -= len(r.frame)
		if err := write(r.frame); err != nil {
			return err
		}
		r.frame = nil
	}
	return nil
}

// valueFrames is the number of frames that what is left of a large value takes.
func (r *runReader) valueFrames() int { return (r.left + r.limit - 1) / r.limit }

// valueSize is the number of bytes that it takes in the file.
func (r *runReader) valueSize() int64 { return int64(r.left) + int64(r.valueFrames())*frameHead }

// skipValue passes over what is left of a large value, without reading what is not in the buffer.
func (r *runReader) skipValue() error {
	if r.left == 0 {
		return nil
	}
	n := r.valueSize()
	r.ordinal += uint32(r.valueFrames())
	r.left = 0
	if buffered := int64(r.end - r.start); n > buffered {
		r.pos += n - buffered
		r.start, r.end = 0, 0
		return nil
	}
	r.start += int(n)
	return nil
}
