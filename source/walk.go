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
	// Describe returns what is known of an entry, which is nil for the data of a MapFile; of a link that is not hidden, what it
	// leads to. A hidden entry can be of any kind. Any other that is neither file nor directory is an error.
	Describe(name string, entry fs.DirEntry) (Marker, error)
}

// Walk lists a version, as Source.Contents does. An entry that is removed meanwhile is an error if it is data.
func Walk(ctx context.Context, t Tree) (Contents, error) {
	w := walker{ctx: ctx, tree: t}
	if err := w.add(""); err != nil {
		return Contents{}, err
	}
	w.c.Sort()
	return w.c, nil
}

type walker struct {
	ctx        context.Context
	tree       Tree
	partitions int // directories of a partitioned table
	c          Contents
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
		m, err := w.tree.Describe(path.Join(dir, e.Name()), e)
		switch hidden := Hidden(e.Name()); {
		case hidden && errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
		case hidden:
			w.c.AddHidden(m.File, m.Dir)
		case m.Dir:
			err = w.addDir(m.Name)
		default:
			w.c.Files = append(w.c.Files, m.File)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addDir adds a directory: one of a partitioned table, a MapFile, or another.
func (w *walker) addDir(name string) error {
	if strings.Count(name, "/") < MaxPartitionDepth && IsPartition(path.Base(name)) {
		if w.partitions++; w.partitions > maxPartitionDirs {
			return Fault(fmt.Errorf("%w: more than %d directories of a partitioned table", ErrLayout, maxPartitionDirs))
		}
		return w.add(name)
	}
	data, err := w.tree.Describe(name+"/data", nil)
	switch {
	case err == nil && !data.Dir:
		w.c.Files = append(w.c.Files, data.File)
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	w.c.Dirs = append(w.c.Dirs, name)
	if w.c.Table != "" || !tableDirs.MatchString(path.Base(name)) {
		return nil
	}
	entries, err := w.tree.ReadDir(name)
	for _, e := range entries {
		if !e.IsDir() {
			w.c.addTableEntry(name + "/" + e.Name())
		}
	}
	return err
}
