package parquet

import (
	"errors"
	"fmt"
)

// ErrCorrupt is what every error about a damaged, truncated or alien file is, by errors.Is. The concrete
// type is *CorruptError.
var ErrCorrupt = errors.New("corrupt Parquet file")

// CorruptError says where a file is damaged and how.
type CorruptError struct {
	Name   string // of the file, as given to NewReader
	Offset int64  // of the row group that was being read
	Record int64  // number of the row in the file, from 0; -1 in the footer
	Reason string
}

func (e *CorruptError) Error() string {
	at := "in the footer"
	if e.Record >= 0 {
		at = fmt.Sprintf("in row %d", e.Record)
	}
	return fmt.Sprintf("%s: %s, in the row group at offset %d: %v: %s", e.Name, at, e.Offset, ErrCorrupt, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
