package load

import (
	"context"
	"errors"
	"syscall"

	"sequins/blocks"
	"sequins/input/avro"
	"sequins/input/finished"
	"sequins/input/parquet"
	"sequins/input/sequencefile"
	"sequins/input/sparkey"
	"sequins/internal/render"
	"sequins/source"
)

// ErrDied is the class of errors of loads whose process exited early, see package loadproc.
var ErrDied = errors.New("the load process has ended too early")

// A Failure is an error of Plan or LoadInto that can be sent to another process as JSON. It keeps the
// text and the results of errors.Is and errors.As for classes that have an Outcome and for
// PartitionError.
type Failure struct {
	Text      string          `json:"text"`
	Outcome   string          `json:"outcome"`
	Partition *PartitionError `json:"partition,omitempty"`
}

// NewFailure returns err as a Failure, or nil for nil.
func NewFailure(err error) *Failure {
	if err == nil {
		return nil
	}
	partition, _ := errors.AsType[*PartitionError](err)
	return &Failure{Text: err.Error(), Outcome: Outcome(err), Partition: partition}
}

func (f *Failure) Error() string { return f.Text }

// Is reports whether target is the class of the failure.
func (f *Failure) Is(target error) bool {
	for _, class := range classes {
		if class.name == f.Outcome && class.err == target { //nolint:errorlint // classes are compared as they are
			return true
		}
	}
	return false
}

// Unwrap returns the PartitionError, if there is one.
func (f *Failure) Unwrap() error {
	if f.Partition == nil {
		return nil
	}
	return f.Partition
}

// Outcome returns the result of Plan or Load, from their error, in one or two words: "ok", "cancelled",
// or the class of the error. Unlike the error's text, it never contains data of the version.
func Outcome(err error) string {
	if err == nil {
		return "ok"
	}
	for _, class := range classes {
		if errors.Is(err, class.err) {
			return class.name
		}
	}
	if _, ok := errors.AsType[*PartitionError](err); ok {
		return "partitioner"
	}
	return "other"
}

// Faulty reports whether the version itself is the cause of an error of Plan or Load: its files are
// damaged or cannot be loaded. Otherwise the source, the disk or this node failed, and another attempt
// may succeed.
func Faulty(err error) bool {
	switch Outcome(err) {
	case "empty", "no records", "mixed formats", "corrupt", "partitioner", "layout", "unsupported", "field", "null key", "too large":
		return true
	}
	return false
}

// Passing reports whether an error of Plan or Load may be temporary: the source, the disk or the load
// process failed.
func Passing(err error) bool {
	switch Outcome(err) {
	case "cancelled", "incomplete", "source changed", "source", "died", DiskFull:
		return true
	}
	return false
}

// DiskFull is the Outcome of a load for which the disk has no room.
const DiskFull = "disk full"

// classes are in order of precedence, for errors that are of several classes.
var classes = []struct {
	err  error
	name string
}{
	{context.Canceled, "cancelled"},
	{ErrIncomplete, "incomplete"},
	{ErrEmpty, "empty"},
	{ErrNoRecords, "no records"},
	{ErrMixed, "mixed formats"},
	{ErrRefuted, "refuted"},
	{source.ErrChanged, "source changed"},
	{ErrUnknown, "corrupt"},
	{sequencefile.ErrCorrupt, "corrupt"},
	{sparkey.ErrCorrupt, "corrupt"},
	{avro.ErrCorrupt, "corrupt"},
	{parquet.ErrCorrupt, "corrupt"},
	{finished.ErrCorrupt, "corrupt"},
	{source.ErrLayout, "layout"},
	{sparkey.ErrUnsupported, "unsupported"},
	{ErrField, "field"},
	{render.ErrNullKey, "null key"},
	{blocks.ErrTooLarge, "too large"},
	{ErrSource, "source"},
	{ErrDied, "died"},
	{syscall.ENOMEM, "died"}, // or would have, a moment later
	{syscall.ENOSPC, DiskFull},
	{syscall.EDQUOT, DiskFull},
}
