package parquet

import (
	"errors"
	"fmt"
)

// ErrCorrupt is matched (errors.Is) by every error about a damaged or truncated file, or one of another format, and by
// errors about unsupported features.
var ErrCorrupt = errors.New("corrupt Parquet file")

// fileError is the text of an ErrCorrupt, which calls a file with unsupported features unsupported.
type fileError string

func (e fileError) Error() string { return string(e) }

// Is makes errors.Is(err, ErrCorrupt) true.
func (e fileError) Is(target error) bool { return target == ErrCorrupt }

// errUnsupported is wrapped by errors about unsupported features.
var errUnsupported = errors.New("not supported")

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), errUnsupported)
}
