package sequencefile

import (
	"errors"
	"fmt"
	"io"
)

// ErrCorrupt is matched (errors.Is) by every error that means that the bytes of a file are not a SequenceFile that this
// package can read: damaged, truncated, or of an unsupported format, version or codec. Errors of the underlying
// io.Reader never match it.
var ErrCorrupt = errors.New("sequencefile: corrupt file")

// CorruptError describes what is wrong with a file, and where.
type CorruptError struct {
	Name   string // of the file, as given to NewReader
	Offset int64  // in the file, of the record, block or header field that is bad, in bytes
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: corrupt SequenceFile at offset %d: %s", e.Name, e.Offset, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// errTruncated is the reason if expected bytes are missing.
var errTruncated = io.ErrUnexpectedEOF
