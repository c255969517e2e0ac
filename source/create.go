package source

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"sequins/internal/names"
)

const (
	// BlocksFile is the name of the manifest of a finished version, see package finished.
	BlocksFile = "_BLOCKS.json"
	// BlockSuffix is the suffix of the names of blocks in a finished version.
	BlockSuffix = ".block"
	// tempSuffix is the suffix of the names of hidden files that a Creator has not committed.
	tempSuffix = ".unfinished"
)

// A Creator is a Source in which the files of a version can be written.
type Creator interface {
	// Create begins a file of exactly size bytes in a version's directory, which is created if necessary. The file gets its
	// name when it is committed, whole and durable, and replaces one that has it. A process that is killed leaves at most
	// a file of which Unfinished is true, or parts of an upload that are not listed.
	Create(ctx context.Context, db, version, name string, size int64) (FileWriter, error)

	// Remove removes files of a version's directory, and then that directory if it is empty. It is not an error if any of
	// them is not there.
	Remove(ctx context.Context, db, version string, names ...string) error
}

// A FileWriter is a file that is being written. It is used by one goroutine, until Commit or Abort. Its writes end soon
// after the context of Create is cancelled.
type FileWriter interface {
	io.Writer
	// Commit publishes the file. After an error, the file is not there or is whole, and everything else is removed as far
	// as possible.
	Commit() error
	// Abort removes what was written. After Commit it does nothing.
	Abort() error
}

// CheckCreate returns an error unless a Creator may create a file of this name.
func CheckCreate(db, version, name string) error {
	if !names.ValidDatabase(db) || !names.Valid(version) || name == "" || name == "." || name == ".." || !names.Valid("x"+name) || Unfinished(name) {
		return fmt.Errorf("%q of version %q of the database %q: %w", name, version, db, fs.ErrInvalid)
	}
	return nil
}

// Unfinished reports whether a file of this name is one that a Creator has not committed.
func Unfinished(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, tempSuffix)
}

// UnfinishedName returns the name of a file until it is committed; unique tells writers apart.
func UnfinishedName(name, unique string) string { return "." + name + "." + unique + tempSuffix }

// CheckWritten returns an error unless as many bytes were written as a file was to have.
func CheckWritten(written, size int64) error {
	if written != size {
		return fmt.Errorf("%d bytes were written of a file of %d", written, size)
	}
	return nil
}
