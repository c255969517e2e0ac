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
	"strings"
	"syscall"

	"sequins/source"
)

// sums reads the checksum file .<name>.crc that Hadoop's local file system (ChecksumFileSystem) writes next to a file.
// Numbers are big-endian:
//
//	offset size
//	     0    4  magic "crc\0"
//	     4    4  bytes per checksum, usually 512
//	     8    4  CRC-32 (of zlib and gzip) of the first chunk, and so on; the last chunk may be shorter
//
// It verifies a file that is read from its start.
type sums struct {
	f     *os.File // the .crc file
	in    *bufio.Reader
	chunk int64
	crc   uint32 // of the current chunk so far
	n     int64  // bytes of the file so far
}

// openSums opens the checksums of a file. It returns nil if there is no .crc file or it has another format, like
// Hadoop.
func openSums(file string) (*sums, error) {
	path := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".crc")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // O_NONBLOCK as for the file itself: it may be a pipe
	if err != nil {
		return nil, err
	}
	s := &sums{f: f, in: bufio.NewReader(f)}
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

// check verifies the bytes that follow those of the last call.
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

// compare compares the checksum of the chunk at start with the next one in the .crc file.
func (s *sums) compare(start int64) error {
	var want [4]byte
	switch _, err := io.ReadFull(s.in, want[:]); {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return s.failed(start, "has no checksum for this chunk")
	case err != nil:
		return err
	}
	if got := binary.BigEndian.Uint32(want[:]); got != s.crc {
		return s.failed(start, fmt.Sprintf("has checksum %08x for %d bytes whose checksum is %08x", got, s.n-start, s.crc))
	}
	s.crc = 0
	return nil
}

// end verifies the last chunk and the length.
func (s *sums) end() error {
	if rest := s.n % s.chunk; rest > 0 {
		if err := s.compare(s.n - rest); err != nil {
			return err
		}
		s.n -= rest // already compared
	}
	if _, err := s.in.ReadByte(); err == nil {
		return s.failed(s.n, "has checksums beyond the end of the file")
	}
	return nil
}

func (s *sums) failed(offset int64, why string) error {
	dir, name := filepath.Split(s.f.Name())
	file := filepath.Join(dir, strings.TrimSuffix(name[1:], ".crc"))
	return fmt.Errorf("%s: offset %d: %w: %s %s; if the file was replaced without Hadoop, remove the checksum file",
		file, offset, source.ErrCorrupt, s.f.Name(), why)
}
