package extsort

import "errors"

// ErrCorrupt is wrapped by the error for a run whose bytes are not those that were written.
var ErrCorrupt = errors.New("corrupt")

// ErrTooLarge is returned for a key longer than [MaxKey] or a value longer than [MaxValue].
var ErrTooLarge = errors.New("too large")
