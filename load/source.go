package load

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"sequins/source"
)

// ErrSource is the class of errors of the source itself: it is unreachable, broke off or refused. A
// later attempt may succeed. A file that is missing, has changed or is damaged is not in this class.
var ErrSource = errors.New("the source cannot be read")

type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

func (e sourceError) Is(target error) bool { return target == ErrSource }

func ofSource(err error) error {
	for _, other := range []error{io.EOF, context.Canceled, fs.ErrNotExist, source.ErrChanged} {
		if err == nil || errors.Is(err, other) {
			return err
		}
	}
	return sourceError{err}
}

// A marked source wraps its errors as ErrSource, and tracks its calls and those of its files.
type marked struct {
	source.Source
	calls calls
}

func (m *marked) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	m.calls.begin()
	defer m.calls.end()
	c, err := m.Source.Contents(ctx, db, version)
	return c, ofSource(err)
}

func (m *marked) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	m.calls.begin()
	defer m.calls.end()
	f, err := m.Source.Open(ctx, db, version, file, o)
	if err != nil {
		return nil, ofSource(err)
	}
	return &markedFile{f, &m.calls}, nil
}

type markedFile struct {
	io.ReadCloser
	calls *calls
}

func (f *markedFile) Read(p []byte) (int, error) {
	f.calls.begin()
	defer f.calls.end()
	n, err := f.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = ofSource(err)
	}
	return n, err
}

func (f *markedFile) Close() error {
	f.calls.begin()
	defer f.calls.end()
	return f.ReadCloser.Close()
}
