package parquet

import (
	"errors"
	"fmt"
)

// ErrCorrupt is what every error about a damaged, truncated or alien file is, by errors.Is, and every error about
// a file that uses what this package does not read. The concrete type is *CorruptError.
var ErrCorrupt = errors.New("corrupt Parquet file")

// CorruptError says where a file is damaged and how.
type CorruptError struct {
	Name   string // of the file, as given to NewReader
	Offset int64  // of the row group that was being read
	Record int64  // number of the row in the file, from 0; -1 in the footer
	Reason string
	// Unsupported reports that nothing is damaged: the file has an encoding, a codec or encryption that is not read.
	Unsupported bool
}

func (e *CorruptError) Error() string {
	at := "in the footer"
	if e.Record >= 0 {
		at = fmt.Sprintf("in row %d", e.Record)
	}
	what := ErrCorrupt.Error()
	if e.Unsupported {
		what = "unsupported Parquet file"
	}
	return fmt.Sprintf("%s: %s, in the row group at offset %d: %s: %s", e.Name, at, e.Offset, what, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// errUnsupported is wrapped by errors about what is not read though it is not damaged.
var errUnsupported = errors.New("not supported")

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), errUnsupported)
}
