package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"sequins/blocks"
	"sequins/input/avro"
	"sequins/input/parquet"
	"sequins/input/sequencefile"
	"sequins/input/sparkey"
	"sequins/internal/render"
	"sequins/shard"
	"sequins/source"
	"sequins/test/expect"
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
		{ErrNoRecords, "no records"},
		{ErrMixed, "mixed formats"},
		{ofSource(source.ErrChanged), "source changed"},
		{sequencefile.ErrCorrupt, "corrupt"},
		{sparkey.ErrCorrupt, "corrupt"},
		{avro.ErrCorrupt, "corrupt"},
		{parquet.ErrCorrupt, "corrupt"},
		{ofSource(source.ErrLayout), "layout"},
		{sparkey.ErrUnsupported, "unsupported"},
		{ErrField, "field"},
		{render.ErrNullKey, "null key"},
		{blocks.ErrTooLarge, "too large"},
		{ofSource(errors.New("away")), "source"},
		{&PartitionError{Key: []byte("secret")}, "partitioner"},
		{&PartitionError{Key: []byte("secret"), Auto: true}, "refuted"},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "disk full"},
		{fmt.Errorf("memory for sorting: %w", syscall.ENOMEM), "died"},
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

// What errors.Is and errors.As find in an error they find in what another process gets of it.
func TestFailure(t *testing.T) {
	if NewFailure(nil) != nil {
		t.Error("a failure without an error")
	}
	for _, class := range classes {
		err := fmt.Errorf("loading: %w", class.err)
		line := check(json.Marshal(NewFailure(err)))(t)
		var f *Failure
		if jerr := json.Unmarshal(line, &f); jerr != nil {
			t.Fatal(jerr)
		}
		if f.Error() != err.Error() || Outcome(f) != class.name || !errors.Is(f, class.err) || errors.Is(f, errNetwork) {
			t.Errorf("%v became %v, %s", err, f, Outcome(f))
		}
	}
	line := check(json.Marshal(NewFailure(&PartitionError{File: "f", Key: []byte("\xff\x00"), Want: 1, Got: 2, Partitioner: shard.Spark})))(t)
	var f *Failure
	expect.NoError(t, json.Unmarshal(line, &f))
	var wrong *PartitionError
	if !errors.As(f, &wrong) || string(wrong.Key) != "\xff\x00" || wrong.Got != 2 || wrong.Partitioner != shard.Spark || Outcome(f) != "partitioner" {
		t.Errorf("%+v, %s", wrong, Outcome(f))
	}
}
