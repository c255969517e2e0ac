package parquet

import (
	"errors"
	"fmt"
)

// ErrCorrupt is matched (errors.Is) by every error about a damaged or truncated file, or one of another format, and by
// errors about unsupported features. The concrete type is *CorruptError.
var ErrCorrupt = errors.New("corrupt Parquet file")

// CorruptError describes what is wrong with a file, and where.
type CorruptError struct {
	Name   string // of the file, as given to NewReader
	Offset int64  // of the row group that was being read
	Record int64  // number of the row in the file, from 0; -1 in the footer
	Reason string
	// Unsupported reports that the file is not damaged but uses an unsupported encoding, codec or encryption.
	Unsupported bool
}

func (e *CorruptError) Error() string {
	at := "in the footer"
	if e.Record >= 0 {
		at = fmt.Sprintf("in row %d, in the row group at offset %d", e.Record, e.Offset)
	}
	what := ErrCorrupt.Error()
	if e.Unsupported {
		what = "unsupported Parquet file"
	}
	return fmt.Sprintf("%s: %s: %s: %s", e.Name, at, what, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// errUnsupported is wrapped by errors about unsupported features.
var errUnsupported = errors.New("not supported")

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), errUnsupported)
}
