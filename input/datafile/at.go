package datafile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sequins/load"
	"sequins/source"
)

// At is where a file is: on this machine (Local), or in a source (InSource).
type At struct {
	// Path is where the file is, for people.
	Path string
	// Size is its size in bytes.
	Size int64

	name  string                                     // relative to the version's directory
	dir   string                                     // the version's directory, of a file on this machine
	open  func(offset int64) (io.ReadCloser, error)  // a part of the file, to be read sequentially
	files func() (version []source.File, known bool) // the data files of its version, in order
	local string                                     // its path, of a file on this machine
}

// Local returns where a file of this machine is. The directory of a MapFile means its data file. The directory of its version
// is the first one above it that is not named column=value.
func Local(path string) (At, error) {
	if isMapFile(path) { // its directory may be named column=value, too
		dir, name := versionOf(filepath.Join(path, "data"))
		return LocalOf(path, dir, strings.TrimSuffix(name, "/data"))
	}
	dir, name := versionOf(path)
	return LocalOf(path, dir, name)
}

// LocalOf is Local for a file whose version is known: dir is its directory, and name that of the file in it.
func LocalOf(path, dir, name string) (At, error) {
	if data := filepath.Join(path, "data"); isDir(path) && !isDir(data) {
		if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
			return At{}, &DirError{path}
		}
		path = data
		name += "/data"
	}
	info, err := os.Stat(path)
	if err != nil {
		return At{}, &fs.PathError{Op: "open", Path: path, Err: unwrapPath(err)}
	}
	if !info.Mode().IsRegular() { // to open it could block forever
		return At{}, &fs.PathError{Op: "open", Path: path, Err: errIrregular}
	}
	return At{
		Path: path, Size: info.Size(), name: name, dir: dir, local: path,
		open:  func(offset int64) (io.ReadCloser, error) { return openLocal(path, offset) },
		files: func() ([]source.File, bool) { return localFiles(dir) },
	}, nil
}

// DirError is the error for a directory that is not that of a MapFile.
type DirError struct{ Path string }

// Error implements error.
func (e *DirError) Error() string {
	return e.Path + " is a directory, and not that of a MapFile: name a file in it"
}

var errIrregular = errors.New("not a regular file")

// unwrapPath returns the reason of a PathError.
func unwrapPath(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// openLocal opens a file at an offset.
func openLocal(path string, offset int64) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// versionOf splits the path of a file into the directory of its version and its name in it. The name has the directories
// column=value of a partitioned table, and that of a MapFile.
func versionOf(path string) (dir, name string) {
	dir, name = filepath.Dir(path), filepath.Base(path)
	up := func() { dir, name = filepath.Dir(dir), filepath.Base(dir)+"/"+name }
	if name == "data" {
		up()
	}
	for depth := 0; depth < source.MaxPartitionDepth && source.IsPartition(filepath.Base(dir)); depth++ {
		up()
	}
	return dir, name
}

// localFiles returns the data files of a version, and whether they are known.
func localFiles(dir string) (files []source.File, known bool) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, false
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name, rerr := filepath.Rel(dir, path)
		switch {
		case err != nil || rerr != nil:
			return errors.Join(err, rerr)
		case path == dir:
			return nil
		case source.Hidden(entry.Name()) && entry.IsDir():
			return filepath.SkipDir
		case source.Hidden(entry.Name()):
			return nil
		case entry.IsDir() && isMapFile(path):
			files = append(files, source.File{Name: filepath.ToSlash(name) + "/data"})
			return filepath.SkipDir
		case entry.IsDir() && !source.IsPartition(entry.Name()):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		files = append(files, source.File{Name: filepath.ToSlash(name)})
		return nil
	})
	slices.SortFunc(files, func(a, b source.File) int { return strings.Compare(a.Name, b.Name) })
	return files, err == nil
}

func isMapFile(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "data"))
	return err == nil && !info.IsDir()
}

// InSource returns where a data file of a version in a source is. files are all of the version.
func InSource(ctx context.Context, src source.Source, db, version string, file source.File, files []source.File) At {
	return At{
		Path: src.Path(db, version) + "/" + file.Name, Size: file.Size, name: file.Name,
		open: func(offset int64) (io.ReadCloser, error) {
			return src.Open(ctx, db, version, file, source.ReadOptions{Offset: offset})
		},
		files: func() ([]source.File, bool) { return files, true },
	}
}

// Name returns the name of the file relative to the directory of its version.
func (a At) Name() string { return a.name }

// Dir returns the directory of the version of a file on this machine.
func (a At) Dir() string { return a.dir }

// Open opens the file at an offset, to be read sequentially.
func (a At) Open(offset int64) (io.ReadCloser, error) { return a.open(offset) }

// readerAt returns a reader of any part of the file.
func (a At) readerAt() *load.RangedFile { return load.NewRangedFile(a.Path, a.Size, a.open) }
