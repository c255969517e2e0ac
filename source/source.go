// Package source owns the interface to stored data: a tree of databases, versions
// and files that jobs write and sequins reads, and of the small file _PIN that its
// commands write. Its subpackages implement it for a local directory, HDFS,
// S3, Google Cloud Storage and Azure.
//
// A version passes through in three steps. The node lists databases and versions;
// for a version to be loaded, it lists the data files and checks that the job has
// finished (List); package load then opens the files and reads each from start to
// end. Requests do not reach this package.
//
// Names of databases and versions follow the rule of package names; others are
// reported and not served. Names that begin with _ or . are
// reserved for the job.
package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// File is a data file of a version.
type File struct {
	// Name is relative to the version's directory, with slashes: part-r-00000,
	// part-r-00000/data for a MapFile, or day=2026-01-31/part-r-00000.
	Name    string
	Size    int64 // in bytes
	ModTime time.Time
	// Written is when the content was written, by a clock of the source that no
	// copy sets back; zero if the source has none. HDFS has none (distcp -p), and S3
	// none for an object of several parts, as its time is that of the beginning of
	// its upload (Amazon S3 User Guide, "Working with object metadata").
	Written time.Time
	// Mark identifies the content of a file from Contents among all that had this
	// name and size: an ETag, the generation of an object, HDFS's file id and
	// modification time, or a hash of both ends of a local file. It has no other
	// meaning.
	Mark string
	// Sum is a checksum of the content, with its kind, if the listing has one: files
	// of one size and checksum have the same content.
	Sum string
}

// Contents is the content of a version's directory. The lists are in ascending
// bytewise order of names.
type Contents struct {
	// Files are the files that are not hidden, and the data files of MapFiles, in
	// the directory and in those of a partitioned table below it; see IsPartition.
	Files []File
	// Hidden are the hidden files and directories, also in the directories of a
	// partitioned table.
	Hidden []Marker
	// Dirs are the other directories. In a source without directories, these are
	// common prefixes of names.
	Dirs []string
	// Table is an entry by which a table format owns the version, or a directory
	// of a partitioned table in it; "" if there is none. Its name is relative to the
	// version's directory. AddHidden, Keys and Walk set it.
	Table string
	// Renamed is when a directory, or a link, was last changed, by the clock of File.Written:
	// files that are moved with their directory, or linked, keep their times.
	Renamed time.Time
	// Whole reports whether the source lists a file only when all of it has been
	// written, as object stores do. Then an upload that is running is not seen.
	Whole bool
	// Now is the time of the listing by the clock of File.Written; zero is the
	// clock of this machine.
	Now time.Time
}

// Marker is a hidden file or directory; see Hidden. A directory has only a name.
type Marker struct {
	File
	Dir bool
}

// Sort sorts the lists.
func (c *Contents) Sort() {
	slices.SortFunc(c.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Hidden, func(a, b Marker) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(c.Dirs)
}

// ErrChanged is wrapped by errors for a file that differs from the one listed or
// opened. Versions must not be changed.
var ErrChanged = errors.New("the file has changed")

// Check returns an error that wraps ErrChanged if f was listed and differs from
// now, whose mark is empty if it is not known.
func (f File) Check(now File) error {
	if f.ModTime.IsZero() || f.Size == now.Size && f.ModTime.Equal(now.ModTime) && (now.Mark == "" || f.Mark == now.Mark) {
		return nil
	}
	return fmt.Errorf("%w: listed with %d bytes of %v, now %d of %v", ErrChanged,
		f.Size, f.ModTime.UTC(), now.Size, now.ModTime.UTC())
}

// ReadOptions configures Source.Open. The zero value reads the whole file without
// a limit.
type ReadOptions struct {
	// Offset is the offset of the first byte to read.
	Offset int64

	// Bandwidth limits the fetched bytes if it is not nil, including read-ahead
	// and repeated requests. Readers may share it.
	Bandwidth *rate.Limiter
}

// Source is a place where versions are stored. Its methods may be called
// concurrently. Errors wrap fs.ErrNotExist and fs.ErrPermission where they apply,
// and name the path. Calls end early if ctx is cancelled.
type Source interface {
	// ReadDir returns the names in a directory, for ListNames. dir is the path relative
	// to the source's own directory, which is "". Symbolic links are followed, and
	// dangling ones are left out.
	ReadDir(ctx context.Context, dir string) (Entries, error)

	// Contents returns the content of a version's directory. Symbolic links are
	// followed. An entry that is neither file nor directory is an error, unless
	// it is hidden. An empty version is not an error. List selects the data
	// files.
	Contents(ctx context.Context, db, version string) (Contents, error)

	// Open opens a file for reading. For a file from Contents, it reads exactly
	// the listed file or fails with an error that wraps ErrChanged. Any other
	// file below the version's directory, such as _SUCCESS, is identified by its
	// Name only. With an empty version, it is a hidden file of the database's
	// directory. Reads fail soon after ctx is cancelled.
	Open(ctx context.Context, db, version string, file File, o ReadOptions) (io.ReadCloser, error)

	// Replace writes a small hidden file of a database's directory, or of the source's if db is empty, in one step: whoever
	// reads it sees the old content or the new one, also after an error. WriteSmall has checked the names.
	Replace(ctx context.Context, db, name string, data []byte) error

	// Path returns the location of a version for messages.
	Path(db, version string) string
}

// A Checksummer is a Source that is asked for the checksum of a file, as its listings have none.
type Checksummer interface {
	// Checksum returns a checksum of the content of a file from Contents, with
	// its kind: files of one size and checksum have the same content. It is "" if
	// there is none for this file. A file that is not the listed one any more is an error
	// that wraps ErrChanged.
	Checksum(ctx context.Context, db, version string, file File) (string, error)
}

// Exists reports whether there is a file of this name under a version's directory,
// which Contents need not have returned.
func Exists(ctx context.Context, src Source, db, version, name string) (bool, error) {
	f, err := src.Open(ctx, db, version, File{Name: name}, ReadOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// Hidden reports whether a file or directory is no data, by its name without
// directories: it is reserved for the job (_SUCCESS, _logs, .part-00000.crc), or a
// temporary file of a copy tool (part-00000._COPYING_).
func Hidden(name string) bool {
	return strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") || isTemporary(name)
}

// ValidFile reports whether name is a relative path that stays below the
// version's directory.
func ValidFile(name string) bool {
	for elem := range strings.SplitSeq(name, "/") {
		if elem == "" || elem == "." || elem == ".." {
			return false
		}
	}
	return !strings.ContainsRune(name, 0)
}
