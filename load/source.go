package load

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"sequins/source"
)

// ErrSource is the class of errors that are the source's: it was away, broke
// off or refused. What is in it need not be wrong, and trying again may help. A
// file that is gone, has changed or is damaged is none of them.
var ErrSource = errors.New("the source cannot be read")

type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

func (e sourceError) Is(target error) bool { return target == ErrSource }

// ofSource gives an error of the source its class.
func ofSource(err error) error {
	for _, other := range []error{io.EOF, context.Canceled, fs.ErrNotExist, source.ErrChanged, source.ErrCorrupt} {
		if err == nil || errors.Is(err, other) {
			return err
		}
	}
	return sourceError{err}
}

// A marked source is one whose errors have their class.
type marked struct{ source.Source }

func (m marked) Contents(ctx context.Context, db, version string) (source.Contents, error) {
	c, err := m.Source.Contents(ctx, db, version)
	return c, ofSource(err)
}

func (m marked) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	f, err := m.Source.Open(ctx, db, version, file, o)
	if err != nil {
		return nil, ofSource(err)
	}
	return markedFile{f}, nil
}

type markedFile struct{ io.ReadCloser }

func (f markedFile) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = ofSource(err)
	}
	return n, err
}
