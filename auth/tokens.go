package auth

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// Tokens are those of a file as it was when it was last read and good. They are
// safe for concurrent use.
type Tokens struct {
	file  string
	table atomic.Pointer[table]

	mu   sync.Mutex  // of reading the file
	seen os.FileInfo // of the file that the table is from
}

// A Grant is what the holder of a token may do.
type Grant struct {
	// Name is that of the token in the file. It is no secret.
	Name string
	// Pages says whether the status may be seen, and how a key is looked up.
	Pages bool

	all       bool // databases, whatever their names
	databases map[string]struct{}
}

// Reads says whether a database may be read. It does not keep db.
func (g *Grant) Reads(db []byte) bool {
	if g.all {
		return true
	}
	_, ok := g.databases[string(db)]
	return ok
}

// Open reads a tokens file.
func Open(file string) (*Tokens, error) {
	t := &Tokens{file: file}
	if err := t.Reload(); err != nil {
		return nil, err
	}
	return t, nil
}

// Reload reads the file again. After an error the tokens are those from before.
// An error names the file, and the line if it is about one.
func (t *Tokens) Reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	doc, info, err := read(t.file)
	if err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	fresh, err := parse(t.file, doc)
	if err != nil {
		return err
	}
	t.seen = info
	t.table.Store(fresh)
	return nil
}

func read(file string) ([]byte, os.FileInfo, error) {
	info, err := os.Stat(file) // before it is opened, which may wait for ever where it is a pipe
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	doc, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(doc) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", file, maxFile)
	}
	return doc, info, err
}

// Changed says whether the file is another one than the tokens are from, or gone.
func (t *Tokens) Changed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := os.Stat(t.file)
	return err != nil || !os.SameFile(now, t.seen) || now.Size() != t.seen.Size() || !now.ModTime().Equal(t.seen.ModTime()) ||
		now.Mode() != t.seen.Mode()
}

// Len is how many tokens there are.
func (t *Tokens) Len() int { return len(t.table.Load().grants) }

// ErrExposed says that others than the file's owner and group may read the file,
// or others than its owner write it.
var ErrExposed = errors.New("others may read or write it")

// Exposed returns ErrExposed with the file and its mode, or nil.
func (t *Tokens) Exposed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mode := t.seen.Mode().Perm(); mode&0o026 != 0 {
		return fmt.Errorf("%s has mode %#o: %w", t.file, mode, ErrExposed)
	}
	return nil
}

var scheme = []byte("Bearer ")

// Find returns what the value of an Authorization header allows; nil if it is of
// no use. presented says whether there was a token, known or not. It allocates
// nothing.
//
// What is compared is the SHA-256 of the token with those of all others, each in
// constant time: how long it takes tells the length of what was presented and how
// many tokens there are, and nothing else.
func (t *Tokens) Find(authorization []byte) (g *Grant, presented bool) {
	if len(authorization) < len(scheme) || !bytes.EqualFold(authorization[:len(scheme)], scheme) {
		return nil, false
	}
	token := bytes.TrimLeft(authorization[len(scheme):], " ")
	if len(token) == 0 {
		return nil, false
	}
	if len(token) > MaxToken {
		return nil, true
	}
	d, all := sha256.Sum256(token), t.table.Load()
	found := 0 // 1 + its place
	for i := range all.digests {
		found |= (i + 1) * subtle.ConstantTimeCompare(d[:], all.digests[i][:])
	}
	if found == 0 {
		return nil, true
	}
	return &all.grants[found-1], true
}
