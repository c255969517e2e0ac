package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"sequins/blocks"
	"sequins/internal/fsys"
)

// readFile reads a file of at most limit bytes. A longer one, and anything that is no regular file, is [blocks.ErrCorrupt]: it
// does not hold what it should.
func readFile(f fsys.FS, path string, limit int64) ([]byte, error) {
	data, err := fsys.ReadFile(f, path, limit)
	switch {
	case errors.Is(err, fsys.ErrTooLong):
		return nil, &blocks.CorruptError{Path: path, Page: -1, Offset: limit, Reason: "too long"}
	case errors.Is(err, fsys.ErrNotRegular):
		return nil, &blocks.CorruptError{Path: path, Page: -1, Reason: "not a regular file"}
	}
	return data, err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC-32C of some bytes in 8 hexadecimal digits.
func checksum(body []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)) }

// corruptFile makes the error for a damaged file of JSON, with the offset where that is known.
func corruptFile(path, reason string, err error) error {
	e := &blocks.CorruptError{Path: path, Page: -1, Reason: reason}
	if err != nil {
		e.Reason += ": " + err.Error()
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		e.Offset = syntax.Offset
	}
	return e
}
