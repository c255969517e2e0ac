package load

import (
	"context"
	"errors"
	"syscall"

	"sequins/avro"
	"sequins/parquet"
	"sequins/sequencefile"
	"sequins/source"
	"sequins/sparkey"
)

// Outcome is how Plan or Load has ended, by their error, in a word or two: "ok",
// "cancelled", or the class of the error. Unlike its text, it never holds
// anything of the data.
func Outcome(err error) string {
	if err == nil {
		return "ok"
	}
	for _, class := range classes {
		if errors.Is(err, class.err) {
			return class.name
		}
	}
	var partition *PartitionError
	if errors.As(err, &partition) {
		return "partitioner"
	}
	return "other"
}

// classes are in the order in which an error that has several is of one.
var classes = []struct {
	err  error
	name string
}{
	{context.Canceled, "cancelled"},
	{ErrIncomplete, "incomplete"},
	{ErrEmpty, "empty"},
	{ErrMixed, "mixed formats"},
	{source.ErrChanged, "source changed"},
	{source.ErrCorrupt, "corrupt"},
	{sequencefile.ErrCorrupt, "corrupt"},
	{sparkey.ErrCorrupt, "corrupt"},
	{avro.ErrCorrupt, "corrupt"},
	{parquet.ErrCorrupt, "corrupt"},
	{ErrSource, "source"},
	{syscall.ENOSPC, "disk full"},
	{syscall.EDQUOT, "disk full"},
}
