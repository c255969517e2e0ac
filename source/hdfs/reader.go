package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	lib "github.com/colinmarc/hdfs/v2"
	"golang.org/x/time/rate"

	"sequins/source"
)

const (
	// bufferSize is the size of a reader's two buffers. Datanodes send on into those
	// of the connection meanwhile.
	bufferSize = 256 << 10

	// readSize is the size of reads from the library: less than the chunk of one
	// checksum, dfs.bytes-per-checksum, by default 512. For a chunk or more, the
	// library returns bytes before it has verified them, and if the checksum is
	// wrong or the connection is lost, it hides the error while another datanode
	// is available.
	readSize = 256

	// someProgress is how much has to be read before a failure counts as the
	// first one again, so that a connection that fails after every few bytes is
	// not retried forever.
	someProgress = 64 << 10
)

// describe converts a namenode's status of a file. Its id is never reused.
func describe(name string, info fs.FileInfo) source.File {
	return source.File{Name: name, Size: info.Size(), ModTime: info.ModTime(),
		Mark: fmt.Sprintf("%d %d", status(info).GetFileId(), info.ModTime().UnixMilli())}
}

// check compares a namenode's current status of a file with the expected one.
func check(want source.File, info fs.FileInfo) error {
	if err := want.Check(describe(want.Name, info)); err != nil {
		return final{err}
	}
	return nil
}

// readable returns an error if a file is of an unsupported kind.
func readable(info fs.FileInfo) error {
	s := status(info)
	switch {
	case s.GetFileType() != isFile:
		return final{source.Fault(errors.New("not a regular file"))}
	case s.GetEcPolicy() != nil:
		return final{source.Fault(errors.New("the file is erasure-coded, which cannot be read; replicated files can"))}
	case s.GetFileEncryptionInfo() != nil:
		return final{source.Fault(errors.New("the file is in an encryption zone, which cannot be read"))}
	}
	return nil
}

// reader reads a file from an offset to its end. Its fields belong to the caller
// of Read and Close, except those of the goroutine once it has started.
type reader struct {
	source *Source
	path   string
	ctx    context.Context
	cancel context.CancelFunc
	file   source.File   // as listed, or else as opened
	limit  *rate.Limiter // may be nil

	started bool   // the goroutine was started
	rest    []byte // of the last buffer, which Read returns
	err     error  // error of every further Read

	// filled receives one buffer after another, of which the one before is not used
	// any more. After the last one it is closed, and end is the reason.
	filled chan []byte
	end    error

	// Used by the goroutine.
	offset  int64   // offset of its next read
	stream  *stream // the current stream; nil to open another
	buffers [2][]byte
}

// stream is an open file of the library.
type stream struct {
	*session
	file *lib.FileReader
}

// Open opens a file of a version for reading.
func (s *Source) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	p, err := source.FilePath(db, version, file.Name, o)
	p = path.Join(s.root, p)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: s.display(p), Err: err}
	}
	r := &reader{source: s, path: p, file: file, limit: o.Bandwidth, offset: o.Offset, filled: make(chan []byte)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	if err := s.retry(ctx, "open", p, r.open); err != nil {
		r.cancel()
		return nil, err
	}
	return r, nil
}

// open opens the first stream. It reads nothing yet.
func (r *reader) open(limit time.Duration) (err error) {
	if r.stream, err = r.newStream(limit); err != nil {
		return err
	}
	r.file = describe(r.file.Name, r.stream.file.Stat())
	if r.offset >= r.file.Size {
		r.stream.close()
		r.stream, r.err = nil, io.EOF
	}
	return nil
}

// newStream opens the file and checks that it is the expected one.
func (r *reader) newStream(limit time.Duration) (*stream, error) {
	x, err := r.source.newSession(r.ctx, limit)
	if err != nil {
		return nil, err
	}
	st := &stream{session: x}
	err = x.ask(func() (err error) {
		st.file, err = x.client.Open(r.path)
		return err
	})
	if err == nil {
		err = cmp.Or(readable(st.file.Stat()), check(r.file, st.file.Stat()))
	}
	if err != nil {
		st.close()
		return nil, err
	}
	st.settle()
	return st, nil
}

// run fills buffers until the file ends or reading fails permanently.
func (r *reader) run() {
	defer close(r.filled)
	a := attempts{limit: r.source.retryFor}
	for r.end == nil {
		err := r.fill(&a)
		if err == nil {
			r.end = io.EOF
			return
		}
		r.end = a.fail(r.ctx, err)
	}
}

// fill fills buffers from one stream.
func (r *reader) fill(a *attempts) error {
	st := r.stream
	r.stream = nil
	if st == nil {
		var err error
		if st, err = r.newStream(a.begin()); errors.Is(err, fs.ErrNotExist) {
			err = final{fmt.Errorf("the file was deleted after it was opened: %w", fs.ErrNotExist)}
		}
		if err != nil {
			return err
		}
	}
	defer st.close()
	if _, err := st.file.Seek(r.offset, io.SeekStart); err != nil {
		return err
	}
	for first := true; r.offset < r.file.Size; first = false {
		b := r.buffer()
		if err := source.Wait(r.ctx, r.limit, int64(len(b))); err != nil {
			return final{err}
		}
		st.within(a.begin())
		n, err := st.read(b)
		if first && n > 0 {
			if cerr := r.confirm(st); cerr != nil {
				n, err = 0, cerr
			}
		}
		st.settle()
		if n >= min(someProgress, len(b)) {
			a.succeed()
		}
		r.offset += int64(n)
		select {
		case r.filled <- b[:n]:
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// buffer returns the buffer that Read does not use, with at most the rest of the file.
func (r *reader) buffer() []byte {
	r.buffers[0], r.buffers[1] = r.buffers[1], r.buffers[0]
	size := min(bufferSize, r.file.Size-r.offset)
	if r.buffers[0] == nil {
		r.buffers[0] = make([]byte, size)
	}
	return r.buffers[0][:min(size, int64(len(r.buffers[0])))]
}

// confirm is called when a stream has looked up the blocks' locations, which it
// does at the first read: they belong to this file only if it has not changed.
// After that the namenode is only needed for block keys, if data transfers are
// protected.
func (r *reader) confirm(st *stream) error {
	var info fs.FileInfo
	err := st.ask(func() (err error) {
		info, err = st.client.Stat(r.path)
		return err
	})
	if err != nil {
		return err
	}
	if r.source.library.DataTransferProtection == "" {
		st.leaveNamenode()
	}
	return check(r.file, info)
}

// read fills b unless an error occurs.
func (st *stream) read(b []byte) (n int, err error) {
	err = guard(func() error {
		for n < len(b) {
			m, err := st.file.Read(b[n:min(n+readSize, len(b))])
			n += m
			if err == io.EOF {
				return io.ErrUnexpectedEOF
			}
			if err != nil {
				return err
			}
			if m > 0 {
				clear(st.fruitless)
			}
		}
		return nil
	})
	if err != nil {
		err = explainRead(err, st.lastDatanode())
	}
	return n, err
}

// Read returns data that was read ahead, or waits for it.
func (r *reader) Read(p []byte) (int, error) {
	switch {
	case r.err != nil:
		return 0, r.err
	case r.ctx.Err() != nil:
		return 0, r.fail(r.ctx.Err())
	case len(r.rest) == 0 && len(p) > 0:
		if err := r.advance(); err != nil {
			return 0, r.fail(err)
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fail makes all further calls of Read fail.
func (r *reader) fail(err error) error {
	if err != io.EOF {
		err = &fs.PathError{Op: "read", Path: r.source.display(r.path), Err: err}
	}
	r.err = err
	return err
}

// advance waits for the next filled buffer.
func (r *reader) advance() error {
	if !r.started {
		r.started = true
		go r.run()
	}
	for len(r.rest) == 0 {
		select {
		case b, ok := <-r.filled:
			if !ok {
				return r.end
			}
			r.rest = b
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
	}
	return nil
}

// Close stops reading ahead and waits for the goroutine.
func (r *reader) Close() error {
	if r.err == fs.ErrClosed {
		return r.err
	}
	r.err = fs.ErrClosed
	r.cancel()
	if r.started {
		for range r.filled { // until the goroutine closes it
		}
	} else if r.stream != nil {
		r.stream.close()
	}
	return nil
}
