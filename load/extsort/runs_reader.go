package extsort

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"

	"sequins/internal/fsys"
	"sequins/internal/pagecache"
)

// reader reads the records of a sorted arena, or of a run through a buffer that it is given, one after the other. Of records
// with the same key, it reads the newest one first. Its fields tell of
// the current record; what they refer to is valid until the next one, or its value, is read.
type reader struct {
	ctx context.Context

	arena   *arena  // nil for a run
	entries []entry // of the records that follow

	file  fsys.File
	run   run
	frame int    // size of a frame
	buf   []byte // has room for a frame behind the longest key
	start int    // buf[start:end] is read and verified, and not yet used
	end   int
	pos   int64 // in the file, of buf[end]; a multiple of the size of a frame, or the end
	cache pagecache.Window

	// Of both:
	done bool
	key  []byte
	rec  []byte // the record, or as much of it as comes before a large value
	head recordHead
	left int // bytes of a large value that have not been read
}

func openRun(ctx context.Context, fs fsys.FS, r run, frame int, buf []byte) (*reader, error) {
	f, err := fs.Open(r.name)
	if err != nil {
		return nil, fmt.Errorf("opening a sort run: %w", err)
	}
	return &reader{ctx: ctx, file: f, run: r, frame: frame, buf: buf, cache: pagecache.Of(f, 0)}, nil
}

// close closes the file of a run, which stays.
func (r *reader) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

func (r *reader) corrupt(off int64, reason string) error {
	return fmt.Errorf("%s: offset %d: %s: %w", r.run.name, off, reason, ErrCorrupt)
}

// next goes to the next record, or to the first one. After the last, done is true.
func (r *reader) next() error {
	if r.arena != nil {
		return r.nextEntry()
	}
	if err := r.copyValue(func([]byte) error { return nil }); err != nil {
		return err
	}
	at := r.pos - int64(r.end-r.start) // of what is used next
	rest := r.run.size - at
	if rest == 0 {
		r.done = true
		return nil
	}
	if err := r.fill(int(min(rest, maxRecordHead))); err != nil {
		return err
	}
	head, ok := parseHead(r.buf[r.start:r.end])
	if !ok || head.value() > len(r.buf)-r.frame {
		return r.corrupt(at, "bad record")
	}
	if int64(head.size()) > rest {
		return r.corrupt(at, "record crosses the end of the run")
	}
	n := head.size()
	if n > len(r.buf)-r.frame {
		n, r.left = head.value(), head.valueLen
	}
	if err := r.fill(n); err != nil {
		return err
	}
	r.set(head, r.buf[r.start:r.start+n])
	r.start += n
	return nil
}

// nextEntry is next in an arena.
func (r *reader) nextEntry() error {
	if len(r.entries) == 0 {
		r.done = true
		return nil
	}
	if len(r.entries)%touchAhead == 0 {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.arena.touch(r.entries[:touchAhead])
	}
	rec := r.arena.mem[r.entries[0].off:r.arena.used]
	head, _ := parseHead(rec) // which add has written
	r.set(head, rec[:head.size()])
	r.entries = r.entries[1:]
	return nil
}

func (r *reader) set(head recordHead, rec []byte) {
	r.head, r.rec, r.key = head, rec, rec[head.head:head.value()]
}

// fill reads on, if need be, until n bytes are in the buffer. There must be as many in the file, and one frame must fit behind them.
func (r *reader) fill(n int) error {
	if r.end-r.start >= n {
		return nil
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	r.end = copy(r.buf, r.buf[r.start:r.end])
	r.start = 0
	want := int(min(int64((len(r.buf)-r.end)/r.frame*r.frame), r.run.size-r.pos))
	b := r.buf[r.end : r.end+want]
	if got, err := r.file.ReadAt(b, r.pos); got < want {
		if err == nil || err == io.EOF {
			return r.corrupt(r.pos+int64(got), "cut short")
		}
		return fmt.Errorf("reading a sort run: %w", err)
	}
	for ; len(b) > 0; b = b[min(r.frame, len(b)):] {
		n := min(r.frame, len(b))
		if crc32.Checksum(b[:n], castagnoli) != r.run.sums[r.pos/int64(r.frame)] {
			return r.corrupt(r.pos, "checksum mismatch")
		}
		r.end += n
		r.pos += int64(n)
	}
	r.cache.Read(r.pos)
	return nil
}

// copyValue gives what is left of a large value to write, in parts.
func (r *reader) copyValue(write func(part []byte) error) error {
	for r.left > 0 {
		if err := r.fill(1); err != nil {
			return err
		}
		part := r.buf[r.start:min(r.end, r.start+r.left)]
		r.start += len(part)
		r.left -= len(part)
		if err := write(part); err != nil {
			return err
		}
	}
	return nil
}
