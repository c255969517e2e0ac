package auth

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// Tokens is the content of the last valid tokens file. It is safe for concurrent
// use.
type Tokens struct {
	file  string
	table atomic.Pointer[table]
}

// Grant is the rights of the holder of a token.
type Grant struct {
	// Name is the token's name in the file. It is not secret.
	Name string
	// Pages permits the status pages and explanations of look-ups.
	Pages bool

	all       bool // all databases
	databases map[string]struct{}

	digest digest
	table  *table // that it is in
}

// Reads reports whether a database may be read. It does not retain db.
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
	return t, t.Reload()
}

// Reload reads the file again. On an error the previous tokens are kept. The
// error names the file, and the line if it is about one. It must not be called while it runs.
func (t *Tokens) Reload() error {
	doc, mode, err := read(t.file)
	if err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	fresh, err := parse(t.file, doc)
	if err != nil {
		return err
	}
	fresh.mode = mode
	sum := sha256.Sum256(doc)
	fresh.fingerprint = fmt.Sprintf("SHA-256 %x", sum[:fingerprintSize])
	t.table.Store(fresh)
	return nil
}

func read(file string) ([]byte, os.FileMode, error) {
	info, err := os.Stat(file) // before opening it, which blocks on a pipe
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close() //nolint:errcheck // only read from
	doc, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(doc) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", file, maxFile)
	}
	return doc, info.Mode(), err
}

// fingerprintSize is the size of a Fingerprint, in bytes: enough to tell files apart, and too few to find a token by.
const fingerprintSize = 4

// Fingerprint returns a part of the hash of the file, by which files of different nodes are compared.
func (t *Tokens) Fingerprint() string { return t.table.Load().fingerprint }

// Len returns the number of tokens.
func (t *Tokens) Len() int { return len(t.table.Load().grants) }

// Exposed returns an error with the file's mode if users other than its owner and group may read
// it, or users other than its owner write it.
func (t *Tokens) Exposed() error {
	if mode := t.table.Load().mode.Perm(); mode&0o026 != 0 {
		return fmt.Errorf("%s has mode %#o: others may read or write it", t.file, mode)
	}
	return nil
}

var scheme = []byte("Bearer ")

// Find returns the grant for the value of an Authorization header, or nil.
// presented reports whether it contained a token, known or not. Find does not
// allocate.
//
// It compares the SHA-256 of the token with all others in constant time: the
// duration reveals only the length of the presented token and the number of
// tokens.
func (t *Tokens) Find(authorization []byte) (g *Grant, presented bool) {
	if len(authorization) < len(scheme) || !bytes.EqualFold(authorization[:len(scheme)], scheme) {
		return nil, false
	}
	token := bytes.TrimLeft(authorization[len(scheme):], " ")
	return t.FindToken(token), len(token) > 0
}

// FindToken returns the grant for a token, or nil. It is Find for a token by itself.
func (t *Tokens) FindToken(token []byte) *Grant {
	if len(token) == 0 || len(token) > MaxToken {
		return nil
	}
	d := sha256.Sum256(token)
	return t.table.Load().find(&d)
}

// Current returns the grant for the token of g according to the file as it is now; nil if the token is no longer in it.
func (t *Tokens) Current(g *Grant) *Grant {
	if now := t.table.Load(); now != g.table {
		return now.find(&g.digest)
	}
	return g
}

// find returns the grant for the digest of a token, or nil, in constant time.
func (t *table) find(d *digest) *Grant {
	found := 0 // 1 + index
	for i := range t.digests {
		found |= (i + 1) * subtle.ConstantTimeCompare(d[:], t.digests[i][:])
	}
	if found == 0 {
		return nil
	}
	return &t.grants[found-1]
}
