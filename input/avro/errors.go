package avro

import (
	"errors"
	"fmt"
)

// ErrCorrupt is matched (errors.Is) by every error about a damaged or truncated file, or one of another format. The
// concrete type is *CorruptError.
var ErrCorrupt = errors.New("corrupt Avro file")

// CorruptError describes what is wrong with a file, and where.
type CorruptError struct {
	Name   string // of the file, as given to NewReader
	Offset int64  // how far the file had been read
	Record int64  // number of the record, from 0; -1 in the header
	Reason string
}

func (e *CorruptError) Error() string {
	at := "in the header"
	if e.Record >= 0 {
		at = fmt.Sprintf("in record %d", e.Record)
	}
	return fmt.Sprintf("%s: %s, by offset %d: %v: %s", e.Name, at, e.Offset, ErrCorrupt, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
