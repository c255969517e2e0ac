package unchanged

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/zeebo/xxh3"

	"sequins/source"
)

// XXH3 is 15 times as fast as SHA-256, which would make loads take a quarter more processor time. It is no cryptographic hash: somebody who
// writes two different files of one hash on purpose gets the first one served, which is his too.

// Sums is a source that hashes the files of one version while they are read from start to end, unless the source below has checksums.
type Sums struct {
	source.Source
	checksummer source.Checksummer // nil: files without a checksum in the listing are hashed

	mu   sync.Mutex
	sums map[string]string // by file name: of the last complete reading, or those that the source has told
}

// Watch returns src for the plan and the load of a version, whose files alone are opened as they were listed.
func Watch(src source.Source) *Sums {
	s := &Sums{Source: src, sums: make(map[string]string)}
	s.checksummer, _ = src.(source.Checksummer)
	return s
}

// knows reports whether the source has a checksum of a file, or could have one.
func (s *Sums) knows(file source.File) bool { return file.Sum != "" || s.checksummer != nil }

// Open implements source.Source.
func (s *Sums) Open(ctx context.Context, db, version string, file source.File, o source.ReadOptions) (io.ReadCloser, error) {
	f, err := s.Source.Open(ctx, db, version, file, o)
	if err != nil || s.knows(file) || file.ModTime.IsZero() || o.Offset != 0 {
		return f, err
	}
	return &hashed{ReadCloser: f, sums: s, file: file, hash: xxh3.New()}, nil
}

func (s *Sums) sum(file source.File) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sums[file.Name]
}

func (s *Sums) set(file source.File, sum string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums[file.Name] = sum
}

// hashed is a file that is hashed while it is read.
type hashed struct {
	io.ReadCloser
	sums *Sums
	file source.File
	hash *xxh3.Hasher
	n    int64
}

func (f *hashed) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	_, _ = f.hash.Write(p[:n]) // never fails
	f.n += int64(n)
	if f.n == f.file.Size && (n > 0 || err == io.EOF) {
		f.sums.set(f.file, fmt.Sprintf("xxh3-128 %x", f.hash.Sum128().Bytes()))
	}
	return n, err
}
