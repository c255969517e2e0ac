package load

import (
	"errors"
	"io"

	"sequins/input/avro"
	"sequins/input/parquet"
	"sequins/input/sequencefile"
	"sequins/input/sparkey"
)

// A File is a data file of a version. It can be read without a load, as a load reads it; see Records.
type File struct {
	Format  string  // FormatSequenceFile, FormatSparkey, FormatAvro or FormatParquet
	Name    string  // relative to the version's directory
	Path    string  // for errors
	Size    int64   // as listed; 0 is a file without records, of every format
	Columns Columns // in the names of directories, to be added to the values
	// Open opens the file at an offset.
	Open func(offset int64) (io.ReadCloser, error)
}

// unreadable is an error of the reader of a format for the header of a file, with that of closing the file, if any.
type unreadable struct{ header, closing error }

func (e *unreadable) Error() string { return errors.Join(e.header, e.closing).Error() }

func (e *unreadable) Unwrap() []error { return []error{e.header, e.closing} }

// open opens the file and reads its header. A file of 0 bytes has none.
func (f File) open(fields Fields, classes *recordClasses) (*input, error) {
	if f.Size == 0 {
		return &input{records: noRecords{}, path: f.Path, body: io.NopCloser(nil), meter: new(meter)}, nil
	}
	in := &input{size: f.Size, path: f.Path}
	if f.Format == FormatParquet {
		in.ranged = &ranged{size: f.Size, path: f.Path, open: f.Open}
		in.body = in.ranged
	} else {
		body, err := f.Open(0)
		if err != nil {
			return nil, err
		}
		in.body, in.meter = body, &meter{r: body, size: f.Size, path: f.Path}
	}
	err := f.decode(in, fields)
	if err == nil {
		if r, ok := in.format.(*sequencefile.Reader); ok {
			err = classes.agree(f.Path, r.Header())
		}
	}
	if err == nil {
		return in, nil
	}
	var unread *unreadable
	if errors.As(err, &unread) {
		unread.closing = in.body.Close()
		return nil, unread
	}
	return nil, errors.Join(err, in.body.Close())
}

// decode creates the reader of the format.
func (f File) decode(in *input, fields Fields) (err error) {
	var columns []string
	switch f.Format {
	case FormatSparkey:
		var r *sparkey.Reader
		r, err = sparkey.NewReader(in.meter, f.Path)
		in.records, in.format, in.deletes = r, r, r
	case FormatAvro:
		var r *avro.Reader
		if r, err = avro.NewReader(in.meter, f.Path, fields); err == nil {
			in.records, in.format, columns = r, r, r.Fields()
		}
	case FormatParquet:
		var r *parquet.Reader
		if r, err = parquet.NewReader(in.ranged, f.Size, f.Path, fields); err == nil {
			in.records, in.format, in.rows, columns = r, r, r, r.Fields()
		}
	default:
		var r *sequencefile.Reader
		r, err = sequencefile.NewReader(in.meter, f.Path)
		in.records, in.format = r, r
	}
	if err != nil {
		return &unreadable{header: err}
	}
	if columns != nil {
		in.records, err = f.Columns.extend(in.records, f.Path, fields, f.Name, columns)
	}
	return err
}

// Records returns the records of the file, which must be closed. With fields.NoKey their keys are empty.
func (f File) Records(fields Fields) (*Records, error) {
	in, err := f.open(fields, new(recordClasses))
	if err != nil {
		return nil, err
	}
	return &Records{in: in}, nil
}

// Records are the records of a File.
type Records struct {
	in       *input
	reported int64
}

// Scan reads the next record. It returns false at the end and after an error, which Err returns.
func (r *Records) Scan() bool { return r.in.Scan() }

// Resume lets Scan go on behind a record whose key is null. It returns false after any other error.
func (r *Records) Resume() bool {
	behind, ok := r.in.records.(interface{ Resume() bool })
	return ok && behind.Resume()
}

// Key returns the key of the current record, until the next Scan.
func (r *Records) Key() []byte { return r.in.Key() }

// Value returns the value of the current record, until the next Scan.
func (r *Records) Value() []byte { return r.in.Value() }

// Deleted reports whether the record deletes its key.
func (r *Records) Deleted() bool { return r.in.deleted() }

// Err returns why Scan ended, or nil at the end of a complete file.
func (r *Records) Err() error { return r.in.Err() }

// Format returns the reader of the format, for what is in the header of the file: a *sequencefile.Reader, *sparkey.Reader,
// *avro.Reader or *parquet.Reader; nil for a file of 0 bytes.
func (r *Records) Format() any { return r.in.format }

// Consumed returns how many bytes of the file have been processed since the last call.
func (r *Records) Consumed() int64 {
	done := r.in.done()
	n := done - r.reported
	r.reported = done
	return n
}

// Close closes the file.
func (r *Records) Close() error { return r.in.close() }

// A RangedFile reads a file of a source at several alternating offsets. It must be used by one goroutine.
type RangedFile struct{ ranged }

// NewRangedFile returns a reader of a file; path is for errors.
func NewRangedFile(path string, size int64, open func(offset int64) (io.ReadCloser, error)) *RangedFile {
	return &RangedFile{ranged{size: size, path: path, open: open}}
}
