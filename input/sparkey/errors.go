package sparkey

import (
	"errors"
	"fmt"
)

var (
	// ErrCorrupt is matched (errors.Is) by every error about a damaged or truncated file, or one of another format. The
	// concrete type is *CorruptError.
	ErrCorrupt = errors.New("corrupt Sparkey log")
	// ErrUnsupported is matched (errors.Is) by errors about a version or compression of a later Sparkey.
	ErrUnsupported = errors.New("unsupported Sparkey log")
)

// CorruptError describes what is wrong with a file, and where.
type CorruptError struct {
	Name   string // of the file, as given to NewReader
	Offset int64  // in the file: of the entry, or of the block that the entry lies in
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: at offset %d: %v: %s", e.Name, e.Offset, ErrCorrupt, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
