package loadproc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sequins/internal/content"
	"sequins/load"
	"sequins/shard"
	"sequins/store"
)

// maxLine is the largest size of a line, in bytes: the largest manifest and its envelope.
const maxLine = 65 << 20

// A Job is a load: the first order that a load process receives.
type Job struct {
	DB string `json:"db"`
	// Input is what is to be loaded. If the source lists another one, the plan fails with source.ErrChanged. Without a hash, it is the input
	// of the version that the source lists.
	Input   content.Input `json:"input"`
	Options load.Options  `json:"options"`
	// Refuted are partitioners that the plan must not choose.
	Refuted []shard.Partitioner `json:"refuted,omitempty"`
	// MemoryLimit limits the private memory of the process, in bytes, enforced by the kernel; 0 is unlimited.
	MemoryLimit int64 `json:"memory_limit"`

	// The Launcher sets the following fields.
	Source    json.RawMessage `json:"source"`    // for Open
	Bandwidth float64         `json:"bandwidth"` // in bytes per second; 0 is unlimited
}

// An order is a line that a load process receives.
type order struct {
	Job       *Job     `json:"job,omitempty"`
	Bandwidth *float64 `json:"bandwidth,omitempty"`
	Load      *goAhead `json:"load,omitempty"`
	Limit     *int64   `json:"limit,omitempty"` // of what the process writes in all, in bytes
}

// A goAhead tells a process to load by its plan.
type goAhead struct {
	Staging store.Staging `json:"staging"`
	Want    []int         `json:"want"`
	Have    int           `json:"have"` // partitions that need not be loaded, for the progress
	// Link makes the process link blocks of other contents first, and wait for another order.
	Link bool `json:"link,omitempty"`
}

// An event is a line that a load process sends to the node. One of Planned, Progress, Linked and Ended is set.
type event struct {
	Planned  *store.Manifest `json:"planned,omitempty"`
	Progress *load.Snapshot  `json:"progress,omitempty"`
	Publish  []int           `json:"publish,omitempty"` // partitions whose blocks are finished and verified
	Written  int64           `json:"written,omitempty"` // bytes to the disk in all, with Progress
	Kept     int64           `json:"kept,omitempty"`    // the most of these that were in files at a time
	Pending  int64           `json:"pending,omitempty"` // bytes that it asks to write, with Progress: it waits for a Limit
	Linked   *int            `json:"linked,omitempty"`  // how many blocks of other contents were linked
	Ended    *ended          `json:"ended,omitempty"`
}

type ended struct {
	Failure *load.Failure `json:"failure,omitempty"` // nil if the load succeeded
}

var (
	errTooLong = fmt.Errorf("a line of more than %d bytes", maxLine)
	errSilent  = errors.New("it has said nothing for too long")
)

type lineReader struct{ lines *bufio.Scanner }

func newLineReader(r io.Reader) lineReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	return lineReader{lines}
}

// next decodes the next line into v. It returns io.EOF at the end.
func (r lineReader) next(v any) error {
	if !r.lines.Scan() {
		switch err := r.lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			return errTooLong
		case err != nil:
			return err
		}
		return io.EOF
	}
	d := json.NewDecoder(bytes.NewReader(r.lines.Bytes()))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && len(bytes.TrimSpace(r.lines.Bytes()[d.InputOffset():])) > 0 {
		err = errors.New("there is more behind it")
	}
	if err != nil {
		return fmt.Errorf("a line that is not understood: %w", err)
	}
	return nil
}

func appendLine(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	return append(line, '\n'), err
}
