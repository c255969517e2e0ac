package local

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sequins/source"
)

// sums are the checksums that Hadoop's local file system (ChecksumFileSystem) writes beside a file, in
// .<name>.crc, all numbers big-endian:
//
//	offset size
//	     0    4  magic "crc\0"
//	     4    4  bytes of the file that a checksum is of, mostly 512
//	     8    4  CRC-32 (of zlib and gzip) of the first so many bytes, and so on; the last is of what is left
//
// They check what is read from the start of the file on.
type sums struct {
	path  string // of the .crc file
	f     *os.File
	in    *bufio.Reader
	chunk int64
	crc   uint32 // of the chunk so far
	n     int64  // bytes of the file so far
}

// openSums opens the checksums of a file. There are none, and that is no error, if there is no .crc file or
// it is something else: so does Hadoop see it.
func openSums(file string) (*sums, error) {
	path := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".crc")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // for pipes, as the file itself
	if err != nil {
		return nil, err
	}
	s := &sums{path: path, f: f, in: bufio.NewReader(f)}
	var header [8]byte
	if _, err = io.ReadFull(s.in, header[:]); err == nil && string(header[:4]) == "crc\x00" {
		s.chunk = int64(int32(binary.BigEndian.Uint32(header[4:])))
	}
	if s.chunk > 0 {
		return s, nil
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return nil, errors.Join(err, f.Close())
}

// check takes the bytes that follow those of the last call.
func (s *sums) check(p []byte) error {
	for len(p) > 0 {
		n := min(int64(len(p)), s.chunk-s.n%s.chunk)
		s.crc = crc32.Update(s.crc, crc32.IEEETable, p[:n])
		p = p[n:]
		if s.n += n; s.n%s.chunk == 0 {
			if err := s.compare(s.n - s.chunk); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare compares the checksum of the chunk at start with the next one of the .crc file.
func (s *sums) compare(start int64) error {
	var want [4]byte
	switch _, err := io.ReadFull(s.in, want[:]); {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return s.failed(start, "has none for what is there")
	case err != nil:
		return err
	}
	if got := binary.BigEndian.Uint32(want[:]); got != s.crc {
		return s.failed(start, fmt.Sprintf("has the checksum %08x for the next %d bytes, and they have %08x", got, s.n-start, s.crc))
	}
	s.crc = 0
	return nil
}

// end checks what is left at the end of the file.
func (s *sums) end() error {
	if rest := s.n % s.chunk; rest > 0 {
		if err := s.compare(s.n - rest); err != nil {
			return err
		}
		s.n -= rest // it has been compared
	}
	if _, err := s.in.ReadByte(); err == nil {
		return s.failed(s.n, "has checksums for more of it")
	}
	return nil
}

func (s *sums) failed(offset int64, why string) error {
	file := filepath.Join(filepath.Dir(s.path), filepath.Base(s.path)[1:len(filepath.Base(s.path))-len(".crc")])
	return fmt.Errorf("%s: offset %d: %w: %s %s; if the file was replaced by other means than Hadoop's, remove that one",
		file, offset, source.ErrCorrupt, s.path, why)
}
