package source

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"sequins/internal/human"
	"sequins/internal/names"
)

// Entries are the names in a directory, hidden ones too, in ascending bytewise
// order.
type Entries struct{ Dirs, Files []string }

// Names are the databases of a source, or the versions of a database, and what
// else is in the directory and not hidden.
type Names struct {
	Names   []string // in ascending bytewise order: the newest version is last
	Invalid []string // directories that are left out because of their names
	Files   []string // files outside of versions, which are not read
}

// Databases returns the names of the databases in a source, in order.
func Databases(ctx context.Context, src Source) ([]string, error) {
	n, err := ListNames(ctx, src, "")
	return n.Names, err
}

// Versions returns the names of a database's versions in ascending bytewise
// order: the newest is last.
func Versions(ctx context.Context, src Source, db string) ([]string, error) {
	n, err := ListNames(ctx, src, db)
	return n.Names, err
}

// ListNames lists the versions of a database, or the databases if db is empty. A
// directory that a table format owns is an error of the class ErrLayout: what is
// in it are no databases and no versions.
func ListNames(ctx context.Context, src Source, db string) (n Names, err error) {
	if db != "" && !names.ValidDatabase(db) {
		return n, &fs.PathError{Op: "list", Path: src.Path(db, ""), Err: fs.ErrNotExist}
	}
	e, err := src.ReadDir(ctx, db)
	if err != nil {
		return n, err
	}
	entry, err := findTable(ctx, src, db, e.Dirs)
	if err != nil {
		return n, err
	}
	if entry != "" {
		return n, tableError(src.Path(db, ""), entry)
	}
	valid := names.Valid
	if db == "" {
		valid = names.ValidDatabase
	}
	for _, name := range e.Dirs {
		switch {
		case valid(name):
			n.Names = append(n.Names, name)
		case !Hidden(name):
			n.Invalid = append(n.Invalid, name)
		}
	}
	n.Files = slices.DeleteFunc(slices.Clone(e.Files), Hidden)
	return n, nil
}

const maxRemarks = 20

// Remarks returns a sentence for each thing in the directory that is left out or
// may be a mistake. db is that of ListNames.
func (n Names) Remarks(db string) (all []string) {
	what, in := "cannot be the name of a database", "the source that are in no database"
	if db != "" {
		what, in = "cannot be the name of a version of "+db, db+" that are in no version"
	}
	for _, name := range n.Invalid[:min(len(n.Invalid), maxRemarks)] {
		all = append(all, fmt.Sprintf("%q in the source is left out: this %s", name, what))
	}
	if len(n.Files) > 0 {
		all = append(all, fmt.Sprintf("files of %s are not read (%s): the place of files is <source>/<database>/<version>/", in, human.Some(n.Files)))
	}
	partitions := slices.DeleteFunc(slices.Clone(n.Names), func(name string) bool { return !IsPartition(name) })
	if db != "" && len(partitions) > 0 {
		all = append(all, fmt.Sprintf("versions of %s are named as the directories of a partitioned table are (%s), and each is served as the whole database; "+
			"if together they are one table, put them into the directory of a version, as %s/<version>/%s", db, human.Some(partitions), db, partitions[0]))
	}
	return all
}
