// Package source owns the idea of where data sits: a tree of databases,
// versions and files that jobs write and sequins only reads. Its
// subpackages are the kinds of place: a local directory, HDFS, S3.
//
// A version comes through here in three steps. The node lists databases and
// versions; of a version that it wants it asks for the data files, and whether
// the job that writes them is done (List); load then opens the files it needs
// and reads each from its start to its end.
//
// Names are the contract between the place and the rest of the system.
// Databases and versions have names that fit in a URL and a file system
// unquoted; what has another name is reported and not served. Names that
// begin with _ or . are the job's own business everywhere.
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

// A File is one data file of a version.
type File struct {
	// Name is relative to the version's directory, with slashes: part-r-00000,
	// or part-r-00000/data for a MapFile.
	Name    string
	Size    int64 // in bytes
	ModTime time.Time
	// ID tells the file from one that has taken its place, where the source has
	// something that does: HDFS's id of it, S3's ETag. It means nothing else.
	ID string
}

// Contents is what is in the directory of a version. The lists are in ascending
// order of the names, byte by byte.
type Contents struct {
	// Files are the files whose names are not hidden, and of each directory that
	// is a MapFile its data.
	Files []File
	// Hidden are the files and directories whose names are hidden.
	Hidden []Marker
	// Dirs are the names of the other directories that are not MapFiles. Where a
	// source has no directories, they have files somewhere in them.
	Dirs []string
	// Iceberg reports whether there is a directory metadata with files that
	// IsIceberg recognizes.
	Iceberg bool
}

// A Marker is a file or a directory whose name is hidden; see Hidden.
type Marker struct {
	Name string
	Dir  bool
}

// Sort brings the lists into their order.
func (c *Contents) Sort() {
	slices.SortFunc(c.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Hidden, func(a, b Marker) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(c.Dirs)
}

// MetadataDir is the directory in which Iceberg keeps the metadata of a table.
const MetadataDir = "metadata"

// IsIceberg reports whether a file of this name in a directory metadata makes
// the directory above a table of Iceberg.
func IsIceberg(name string) bool {
	return name == "version-hint.text" || strings.HasSuffix(name, ".metadata.json") || strings.HasSuffix(name, ".metadata.json.gz")
}

// ErrChanged is the class of errors about a file that is not the one that was
// listed, or opened, under its name. Versions are immutable; this one is not.
var ErrChanged = errors.New("the file is not what it was")

// ErrCorrupt is the class of errors about a file that is not what the source's
// own checksums of it say.
var ErrCorrupt = errors.New("the file is not what its checksums say")

// Check returns an error of the class ErrChanged if f was listed and is another
// file than now.
func (f File) Check(now File) error {
	if f.ModTime.IsZero() || f.Size == now.Size && f.ModTime.Equal(now.ModTime) && f.ID == now.ID {
		return nil
	}
	return fmt.Errorf("%w: it had %d bytes of %v, and has %d of %v", ErrChanged,
		f.Size, f.ModTime.UTC(), now.Size, now.ModTime.UTC())
}

// ReadOptions say how a file is read. The zero value is: all of it, as fast as
// it comes.
type ReadOptions struct {
	// Offset is that of the first byte.
	Offset int64

	// Bandwidth, if it is not nil, is asked before bytes are fetched, including
	// those that are read ahead, and those that are fetched a second time after
	// a fault. Many readers may share one.
	Bandwidth *rate.Limiter
}

// A Source is a place where data sits. Its methods may be called from several
// goroutines at a time. Errors say so with fs.ErrNotExist and fs.ErrPermission
// where that is what is wrong, and name the path. Cancelling ctx ends a call
// early.
type Source interface {
	// Databases returns the names of the databases, sorted.
	Databases(ctx context.Context) ([]string, error)

	// Versions returns the names of a database's versions, the newest last:
	// in ascending order, byte by byte.
	Versions(ctx context.Context, db string) ([]string, error)

	// Contents returns what is in the directory of a version. Symbolic links are
	// followed. Something that is neither a file nor a directory is an error,
	// unless its name is hidden. A version that exists and is empty has no
	// contents, and that is no error. Which of the files are data is decided by
	// List.
	Contents(ctx context.Context, db, version string) (Contents, error)

	// Open opens a file for reading. Of one that Contents returned, what is read is
	// the file that was listed, or an error of the class ErrChanged, however
	// often it is opened. Any other under the version's directory, such as
	// _SUCCESS, is given by its name alone. Reads fail soon after ctx is
	// cancelled.
	Open(ctx context.Context, db, version string, file File, o ReadOptions) (io.ReadCloser, error)

	// Path returns where a version is, as a person would write it down.
	Path(db, version string) string
}

// A Reporter is a Source that can tell which directories it leaves out because
// of their names.
type Reporter interface {
	// Invalid returns the names of the directories that would be databases,
	// or, if db is not empty, versions of db, if it were not for their names.
	// Hidden names are not among them.
	Invalid(ctx context.Context, db string) ([]string, error)
}

// A Finder is a Source that finds out whether a file is there without opening it
// to be read.
type Finder interface {
	// Exists reports whether there is a file of this name under a version's
	// directory, which Contents need not have returned.
	Exists(ctx context.Context, db, version, name string) (bool, error)
}

// Exists asks src whether a file is there; see Finder. Of a source that is no Finder
// the file is opened, and nothing of it is read.
func Exists(ctx context.Context, src Source, db, version, name string) (bool, error) {
	if f, ok := src.(Finder); ok {
		return f.Exists(ctx, db, version, name)
	}
	f, err := src.Open(ctx, db, version, File{Name: name}, ReadOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// Invalid asks src for the names it leaves out; see Reporter. A source that
// does not know answers with none.
func Invalid(ctx context.Context, src Source, db string) ([]string, error) {
	if r, ok := src.(Reporter); ok {
		return r.Invalid(ctx, db)
	}
	return nil, nil
}

// MaxName is the length of the longest name of a database or a version, in
// bytes: what file systems take.
const MaxName = 255

// ValidName reports whether s can be the name of a database or a version:
// letters, digits, dots, underscores and dashes, the first a letter or a
// digit.
func ValidName(s string) bool {
	if s == "" || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// ValidDatabase is ValidName, less the names that mean something else in a
// URL.
func ValidDatabase(s string) bool {
	switch s {
	case "healthz", "livez", "readyz":
		return false
	}
	return ValidName(s)
}

// Hidden reports whether a file or directory of this name is the job's own:
// _SUCCESS, _logs, .part-00000.crc.
func Hidden(name string) bool {
	return strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".")
}

// ValidFile reports whether name can be a file under a version's directory:
// one that does not lead out of it.
func ValidFile(name string) bool {
	for elem := range strings.SplitSeq(name, "/") {
		if elem == "" || elem == "." || elem == ".." {
			return false
		}
	}
	return !strings.ContainsRune(name, 0)
}
