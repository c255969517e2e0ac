package source

import (
	"errors"
	"syscall"
)

// A fault is an error with the class that Lasting looks for.
type fault struct{ error }

// Fault marks an error of a Source about a version as lasting; see Lasting. It keeps
// the text.
func Fault(err error) error { return fault{err} }

// Unwrap returns the error without the class.
func (f fault) Unwrap() error { return f.error }

// Lasting reports whether an error of List or of a Source is about the version
// itself, so that another attempt fails like this one until the version changes:
// its layout is not supported, a marker cannot be understood, or a file is not a
// regular file. All other errors may pass.
func Lasting(err error) bool {
	_, isFault := errors.AsType[fault](err)
	return isFault || errors.Is(err, ErrLayout) || errors.Is(err, syscall.ELOOP)
}
