package load

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"sequins/avro"
	"sequins/parquet"
	"sequins/sequencefile"
	"sequins/source"
	"sequins/sparkey"
)

func TestOutcome(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{nil, "ok"},
		{context.Canceled, "cancelled"},
		{ofSource(fmt.Errorf("reading: %w", context.Canceled)), "cancelled"},
		{ErrIncomplete, "incomplete"},
		{ErrEmpty, "empty"},
		{ErrMixed, "mixed formats"},
		{ofSource(source.ErrChanged), "source changed"},
		{ofSource(source.ErrCorrupt), "corrupt"},
		{sequencefile.ErrCorrupt, "corrupt"},
		{sparkey.ErrCorrupt, "corrupt"},
		{avro.ErrCorrupt, "corrupt"},
		{parquet.ErrCorrupt, "corrupt"},
		{ofSource(errors.New("away")), "source"},
		{&PartitionError{Key: []byte("secret")}, "partitioner"},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "disk full"},
		{errors.New("secret"), "other"},
	}
	for _, test := range tests {
		err := test.err
		if err != nil {
			err = fmt.Errorf("loading version v of db: %w", err)
		}
		if got := Outcome(err); got != test.want {
			t.Errorf("%v: %q, want %q", err, got, test.want)
		}
	}
}
