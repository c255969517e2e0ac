package sparkey

import (
	"errors"
	"fmt"
)

var (
	// ErrCorrupt is what every error about a damaged, truncated or alien file is, by errors.Is. The concrete type is *CorruptError.
	ErrCorrupt = errors.New("corrupt Sparkey log")
	// ErrUnsupported is what an error about a version or compression of a later Sparkey is, by errors.Is.
	ErrUnsupported = errors.New("unsupported Sparkey log")
)

// CorruptError says where a file is damaged and how.
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
