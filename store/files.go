package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	"sequins/blocks"
	"sequins/internal/fsys"
)

// A fileKind is a kind of the store's files, a manifest or a State. Each is one line of JSON,
//
//	{"format_version":5,"crc32c":"0123abcd","manifest":{…}}
//
// where crc32c is the CRC-32C of the bytes of the value behind the last name, in 8 hexadecimal digits. A file that is laid out in another
// way, or is of another format version, is damaged.
type fileKind struct {
	name    string // of the last member
	version int64
	limit   int64 // of the file, in bytes
}

// ErrTooLarge is returned for what would make a file that is longer than the store reads.
var ErrTooLarge = errors.New("too large")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC-32C of some bytes in 8 hexadecimal digits.
func checksum(body []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)) }

func (k fileKind) seal(body []byte) ([]byte, error) {
	data := fmt.Appendf(nil, `{"format_version":%d,"crc32c":"%s","%s":%s}`+"\n", k.version, checksum(body), k.name, body)
	if int64(len(data)) > k.limit {
		return nil, fmt.Errorf("%s of %d bytes: %w", k.name, len(data), ErrTooLarge)
	}
	return data, nil
}

// body returns the body of a file; path is for its errors. The newline may be missing: in an answer of another node it is.
func (k fileKind) body(data []byte, path string) ([]byte, error) {
	const start = `{"format_version":%d,`
	var version int64
	if _, err := fmt.Sscanf(string(data[:min(len(data), len(start)+20)]), start, &version); err == nil && version != k.version {
		return nil, damaged(path, fmt.Errorf("its format version is %d, and %d can be read", version, k.version))
	}
	rest, good := bytes.CutPrefix(data, fmt.Appendf(nil, start+`"crc32c":"`, k.version))
	crc, rest, found := bytes.Cut(rest, []byte(`","`+k.name+`":`))
	body, whole := bytes.CutSuffix(bytes.TrimSuffix(rest, []byte("\n")), []byte("}"))
	if !good || !found || !whole {
		return nil, damaged(path, errors.New("not a "+k.name))
	}
	if sum := checksum(body); sum != string(crc) {
		return nil, damaged(path, fmt.Errorf("checksum is %s, should be %.16q", sum, crc))
	}
	return body, nil
}

// read returns the content of a file. A file that is too long, and anything that is no regular file, is damage.
func (k fileKind) read(f fsys.FS, path string) ([]byte, error) {
	data, err := fsys.ReadFile(f, path, k.limit)
	if errors.Is(err, fsys.ErrTooLong) || errors.Is(err, fsys.ErrNotRegular) {
		return nil, damaged(path, err)
	}
	return data, err
}

// write replaces a file, durably. The name of the temporary file is never the same twice.
func (s *Store) write(path string, data []byte) error {
	temp := path + "." + strconv.FormatUint(s.names.Add(1), 10) + tempSuffix
	return fsys.WriteFile(s.fs, temp, path, data)
}

// damaged makes the error for a damaged file, with the offset where that is known.
func damaged(path string, err error) error {
	e := &blocks.CorruptError{Path: path, Page: -1, Reason: err.Error()}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		e.Offset = syntax.Offset
	}
	return e
}
