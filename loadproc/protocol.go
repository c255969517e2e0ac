package loadproc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"sequins/blocks"
	"sequins/load"
	"sequins/shard"
)

// maxLine is the length of the longest line, in bytes: that of a manifest, and what stands around it.
const maxLine = 65 << 20

// A Job is what a load process is told first.
type Job struct {
	DB      string       `json:"db"`
	Version string       `json:"version"`
	Options load.Options `json:"options"`
	// Refuted are the partitioners that the plan is not to choose.
	Refuted []shard.Partitioner `json:"refuted,omitempty"`
	// MemoryLimit bounds the private memory of the process, in bytes; 0 does not. The kernel enforces it.
	MemoryLimit int64 `json:"memory_limit"`

	// These are filled in by the Launcher.
	Source    json.RawMessage `json:"source"`    // for Open
	Bandwidth float64         `json:"bandwidth"` // in bytes a second; 0 is not limited
}

// An order is what a load process is told later.
type order struct {
	Bandwidth *float64 `json:"bandwidth,omitempty"`
	Load      *goAhead `json:"load,omitempty"`
}

// A goAhead tells a process to load by its plan.
type goAhead struct {
	Staging blocks.Staging `json:"staging"`
	Want    []int          `json:"want"`
	Have    int            `json:"have"` // partitions that need not be loaded, for the progress
}

// An event is what a load process tells the node. One of Planned, Progress and Ended is set.
type event struct {
	Planned  *blocks.Manifest `json:"planned,omitempty"`
	Progress *progress        `json:"progress,omitempty"`
	Publish  []int            `json:"publish,omitempty"` // partitions whose blocks are finished and verified
	Ended    *ended           `json:"ended,omitempty"`
}

// progress is how far a load is, and what was read since the last one.
type progress struct {
	Snapshot  load.Snapshot   `json:"snapshot"`
	Bytes     int64           `json:"bytes"`
	Records   int64           `json:"records"`
	Files     []time.Duration `json:"files,omitempty"` // how long each took that was read
	FilesLeft *int64          `json:"files_left,omitempty"`
}

// ended is how a load has ended.
type ended struct {
	Failure *load.Failure `json:"failure,omitempty"` // nil if it has not failed
}

var (
	errTooLong = fmt.Errorf("a line of more than %d bytes", maxLine)
	errSilent  = errors.New("it has said nothing for too long")
)

// A lineReader reads lines of JSON.
type lineReader struct{ lines *bufio.Scanner }

func newLineReader(r io.Reader) lineReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	return lineReader{lines}
}

// next decodes the next line into v. At the end it returns io.EOF.
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

// appendLine encodes v as a line.
func appendLine(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	return append(line, '\n'), err
}
