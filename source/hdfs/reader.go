package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	lib "github.com/colinmarc/hdfs/v2"
	"golang.org/x/time/rate"

	"sequins/source"
)

const (
	// maxRead bounds what one Read returns, so that readers that share a limiter
	// take turns.
	maxRead = 256 << 10

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
// of Read and Close. Datanodes send on into the buffers of the connection meanwhile.
type reader struct {
	source *Source
	path   string
	ctx    context.Context
	file   source.File   // as listed, or else as opened
	limit  *rate.Limiter // may be nil

	offset   int64   // of the next byte
	stream   *stream // nil to open another
	failures attempts
	progress int64 // bytes since the last failure
	err      error // error of every further Read
}

// stream is an open file of the library.
type stream struct {
	*session
	file      *lib.FileReader
	confirmed bool
}

// Open opens a file of a version for reading.
func (s *Source) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	p, err := source.FilePath(db, version, file.Name, o)
	p = path.Join(s.root, p)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: s.display(p), Err: err}
	}
	r := &reader{source: s, path: p, ctx: ctx, file: file, limit: o.Bandwidth, offset: o.Offset, failures: attempts{limit: s.retryFor}}
	if err := s.retry(ctx, "open", p, r.open); err != nil {
		return nil, err
	}
	return r, nil
}

// open opens the first stream. It reads nothing yet.
func (r *reader) open() (err error) {
	if r.stream, err = r.newStream(); err != nil {
		return err
	}
	r.file = describe(r.file.Name, r.stream.file.Stat())
	if r.offset >= r.file.Size {
		r.leave(io.EOF)
	}
	return nil
}

// newStream opens the file and checks that it is the expected one.
func (r *reader) newStream() (*stream, error) {
	x, err := r.source.newSession(r.ctx)
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
	return st, nil
}

// Read returns less than there is room for where a datanode has failed.
func (r *reader) Read(p []byte) (n int, err error) {
	if r.err == nil && r.ctx.Err() != nil {
		r.fail(r.ctx.Err())
	}
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	p = p[:min(len(p), maxRead, int(min(r.file.Size-r.offset, maxRead)))]
	for r.err == nil && n == 0 {
		if n, err = r.attempt(p); err != nil {
			r.fail(r.failures.fail(r.ctx, err))
		}
	}
	if r.err == nil && r.offset == r.file.Size {
		r.leave(io.EOF)
	}
	if n > 0 {
		return n, nil
	}
	return 0, r.err
}

// fail makes all further calls of Read fail, unless err is nil.
func (r *reader) fail(err error) {
	if err != nil {
		r.leave(&fs.PathError{Op: "read", Path: r.source.display(r.path), Err: err})
	}
}

// leave closes the stream, and makes all further calls of Read return an error.
func (r *reader) leave(err error) {
	r.err = err
	if r.stream != nil {
		r.stream.close()
		r.stream = nil
	}
}

// attempt reads from the stream, and opens one if there is no stream. An error ends the stream.
func (r *reader) attempt(p []byte) (n int, err error) {
	if r.stream == nil {
		if r.stream, err = r.newStream(); errors.Is(err, fs.ErrNotExist) {
			err = final{fmt.Errorf("the file was deleted after it was opened: %w", fs.ErrNotExist)}
		}
		if err != nil {
			return 0, err
		}
	}
	st := r.stream
	if err = source.Wait(r.ctx, r.limit, int64(len(p))); err != nil {
		err = final{err}
	} else if !st.confirmed {
		_, err = st.file.Seek(r.offset, io.SeekStart)
	}
	if err == nil {
		n, err = st.read(p)
	}
	if n > 0 && !st.confirmed {
		st.confirmed = true
		if cerr := r.confirm(st); cerr != nil {
			n, err = 0, cerr
		}
	}
	r.offset += int64(n)
	if r.progress += int64(n); r.progress >= someProgress {
		r.failures.succeed()
	}
	if err != nil {
		st.close()
		r.stream, r.progress = nil, 0
	}
	return n, err
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
		err = explainRead(err, st.datanode)
	}
	return n, err
}

// Close closes the connections.
func (r *reader) Close() error {
	if r.err == fs.ErrClosed {
		return r.err
	}
	r.leave(fs.ErrClosed)
	return nil
}
