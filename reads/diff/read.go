package diff

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine limits a line, in bytes: a key of 64 KiB, each byte escaped, or the report with a row for each of 100,000
// partitions.
const maxLine = 32 << 20

// Read reads an answer of lines. It calls difference for each key that differs, if the answer has them, and progress now
// and then. The error is that of the node, or of difference.
func Read(r io.Reader, difference func(Difference) error, progress func(Progress)) (*Report, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
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
