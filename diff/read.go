package diff

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read reads an answer of lines. It calls difference for each key that differs, if the answer has them, and progress now
// and then. The error is that of the node, or of difference.
func Read(r io.Reader, difference func(Difference) error, progress func(Progress)) (*Report, error) {
	lines := newLines(r)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("the answer cannot be read: %w", err)
		}
		switch {
		case l.Report != nil:
			return l.Report, nil
		case l.Error != "":
			return nil, errors.New(l.Error)
		case l.Progress != nil:
			progress(*l.Progress)
		case l.Difference != nil:
			if err := difference(*l.Difference); err != nil {
				return nil, err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return nil, errors.New("the answer breaks off")
}

// newLines returns the lines of an answer. The last one has a row for each partition that differs.
func newLines(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	return lines
}
