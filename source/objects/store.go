package objects

import (
	"context"
	"errors"
	"io"
	"time"
)

// Store is a bucket of an object store. Its methods may be called concurrently, and retry what fails temporarily. Errors wrap
// fs.ErrNotExist, fs.ErrPermission and source.ErrChanged where they apply; the Source adds the key. Answers are not trusted.
type Store interface {
	// URL returns the URL of a key, for messages.
	URL(key string) string

	// List returns the page of a listing that begins at a token, which is "" for the first page: the objects whose
	// keys have a prefix. Unless deep is set, those with a slash after the prefix are replaced by Page.Dirs. A directory
	// without any key below it has an object of the name of the prefix.
	List(ctx context.Context, prefix string, deep bool, token string) (Page, error)

	// Get requests n bytes of an object from an offset, or the whole object if n is negative. With an id, only the object
	// of that id is returned. An offset at or after the end is an error that wraps ErrRange.
	Get(ctx context.Context, key, id string, offset, n int64) (*Body, error)

	// Put writes a small object.
	Put(ctx context.Context, key string, data []byte) error
}

// ErrRange is wrapped by errors of Store.Get for an offset at or after the end of the object.
var ErrRange = errors.New("the object is not that long")

// Page is a page of a listing. Keys are complete, with the prefix.
type Page struct {
	Objects []Object
	Dirs    []string // with a slash at the end
	More    bool     // there is a page after this one
	Next    string   // its token
	// Now is the server's time; zero if it does not tell.
	Now time.Time
}

// Object is a listed object.
type Object struct {
	Key      string
	Size     int64
	Modified time.Time // when it was last modified, or created
	Written  time.Time // Modified, or zero if the object was not whole then
	ID       string
	Sum      string // see source.File
	Dir      bool   // it stands for a directory
}

// Body is the answer of a Store to a request for an object.
type Body struct {
	io.ReadCloser
	Offset   int64     // of the first byte
	Size     int64     // of the object
	ID       string    // of the object; empty if what answers is no object store
	Modified time.Time // zero if the id alone identifies the content
}
