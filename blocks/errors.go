package blocks

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"sequins/blocks/internal/file"
	"sequins/blocks/internal/index"
)

// ErrCorrupt is the class of every damage found in a block, and in what the store keeps beside them:
// errors.Is(err, ErrCorrupt) decides whether a file must be set aside and loaded again.
var ErrCorrupt = errors.New("corrupt")

// IsDamage reports whether loading a block again would help after err: its bytes are not those that were written, or the
// disk or the file system cannot read them.
func IsDamage(err error) bool {
	var errno syscall.Errno
	return errors.Is(err, ErrCorrupt) || errors.As(err, &errno) && slices.Contains(unreadable, errno)
}

// CorruptError says which file is damaged and where.
type CorruptError struct {
	Path   string // the file, as it was opened
	Page   int    // ordinal of the damaged page, or -1 where the damage is outside the pages
	Offset int64  // byte offset in the file at which the damaged part begins
	Reason string // what is wrong
}

// Error names the file, the page and the offset.
func (e *CorruptError) Error() string {
	if e.Page < 0 {
		return fmt.Sprintf("%s: offset %d: %s: corrupt", e.Path, e.Offset, e.Reason)
	}
	return fmt.Sprintf("%s: page %d at offset %d: %s: corrupt", e.Path, e.Page, e.Offset, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// CorruptSuffix follows the name of a block's file that was set aside as damaged. A [Reader] of the block finds the file under
// this name too.
const CorruptSuffix = file.CorruptSuffix

// ErrOrder is returned by [Writer.Add] for a key that is not greater than the one before it.
var ErrOrder = errors.New("keys not in ascending order")

// ErrTooLarge is returned for a key longer than [MaxKey], a value longer than [MaxValue], or a block too large for its
// index.
var ErrTooLarge = index.ErrTooLarge

// ErrStage is returned for a call that the writer's stage does not allow, such as Add after Finish.
var ErrStage = errors.New("call out of order")

// ErrBusy is returned by [Reader.Get] and what else reads a block when too many reads of the disk are on their way and
// none has ended for a second.
var ErrBusy = errors.New("the disk is busy: too many reads are on their way")
