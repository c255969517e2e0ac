package extsort

import "errors"

// ErrCorrupt is wrapped by the error for a run whose bytes are not those that were written.
var ErrCorrupt = errors.New("corrupt")
