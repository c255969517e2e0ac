package load

import (
	"errors"
	"io"
	"math"

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

// open opens the file and reads its header. A file of 0 bytes has none.
func (f File) open(fields Fields, classes *recordClasses) (*Records, error) {
	if f.Size == 0 {
		return &Records{records: noRecords{}, path: f.Path, body: io.NopCloser(nil), meter: new(meter)}, nil
	}
	in := &Records{size: f.Size, path: f.Path}
	if f.Format == FormatParquet {
		in.ranged = NewRangedFile(f.Path, f.Size, f.Open)
		in.body = in.ranged
	} else {
		body, err := f.Open(0)
		if err != nil {
			return nil, err
		}
		in.body, in.meter = body, &meter{r: body, size: f.Size, path: f.Path}
	}
	if err := f.decode(in, fields, classes); err != nil {
		return nil, errors.Join(err, in.body.Close())
	}
	return in, nil
}

// decode creates the reader of the format.
func (f File) decode(in *Records, fields Fields, classes *recordClasses) (err error) {
	var columns []string
	switch f.Format {
	case FormatSparkey:
		var r *sparkey.Reader
		r, err = sparkey.NewReader(in.meter, f.Path)
		in.records, in.deletes = r, r
	case FormatAvro:
		var r *avro.Reader
		if r, err = avro.NewReader(in.meter, f.Path, fields); err == nil {
			in.records, columns = r, r.Fields()
		}
	case FormatParquet:
		var r *parquet.Reader
		if r, err = parquet.NewReader(in.ranged, f.Size, f.Path, fields); err == nil {
			in.records, in.rows, columns = r, r, r.Fields()
		}
	default:
		var r *sequencefile.Reader
		if r, err = sequencefile.NewReader(in.meter, f.Path); err == nil {
			in.records, err = r, classes.agree(f.Path, r.Header())
		}
	}
	if err == nil && columns != nil {
		in.records, err = f.Columns.extend(in.records, f.Path, fields, f.Name, columns)
	}
	return err
}

// Records returns the records of the file, which must be closed. With fields.NoKey their keys are empty. Those whose key is null,
// or whose key or value is too long, are left out, as by a load that may leave out any number.
func (f File) Records(fields Fields) (*Records, error) {
	in, err := f.open(fields, new(recordClasses))
	if err == nil {
		in.tolerance = newTolerance(math.MaxInt64)
	}
	return in, err
}
