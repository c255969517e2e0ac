package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// A Tree is a version's directory in a source with directories. Names are relative to it, with slashes; "" is the
// directory itself.
type Tree interface {
	// ReadDir returns the entries of a directory. A link is one, whatever it leads to.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Describe returns what is known of an entry; of a link that is not hidden, what it leads to. A hidden entry can be of any
	// kind. Any other that is neither file nor directory is an error.
	Describe(name string, entry fs.DirEntry) (Marker, error)
}

// Walk lists a version, as Source.Contents does. An entry that is removed meanwhile is an error if it is data.
func Walk(ctx context.Context, t Tree) (Contents, error) {
	w := walker{ctx: ctx, tree: t}
	if err := w.add(""); err != nil {
		return Contents{}, err
	}
	return w.keys.Contents(), nil
}

type walker struct {
	ctx        context.Context
	tree       Tree
	partitions int // directories of a partitioned table
	keys       Keys
}

// add adds the entries of a directory: the version's, or one of a partitioned table.
func (w *walker) add(dir string) error {
	entries, err := w.tree.ReadDir(dir)
	if dir != "" && errors.Is(err, fs.ErrNotExist) {
		return nil // it has just been removed
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.ctx.Err(); err != nil { // a description can take long: marks of local files are read
			return err
		}
		name := path.Join(dir, e.Name())
		m, err := w.tree.Describe(name, e)
		switch hidden := Hidden(e.Name()); {
		case hidden && errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !m.Dir:
			w.keys.Add(m.File)
		case hidden:
			w.keys.Add(File{Name: name + "/"})
		default:
			if err := w.addDir(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// addDir adds a directory: the content of one of a partitioned table, and the names in a MapFile or another.
func (w *walker) addDir(name string) error {
	if strings.Count(name, "/") < MaxPartitionDepth && IsPartition(path.Base(name)) {
		if w.partitions++; w.partitions > maxPartitionDirs {
			return Fault(fmt.Errorf("%w: more than %d directories of a partitioned table", ErrLayout, maxPartitionDirs))
		}
		return w.add(name)
	}
	w.keys.Add(File{Name: name + "/"})
	entries, err := w.tree.ReadDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has just been removed
	}
	for _, e := range entries {
		m := Marker{File: File{Name: name + "/" + e.Name()}, Dir: e.IsDir()}
		if e.Name() == mapFileData {
			if m, err = w.tree.Describe(m.Name, e); err != nil {
				return err
			}
		}
		if !m.Dir {
			w.keys.Add(m.File)
		}
	}
	return err
}
