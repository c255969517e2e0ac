package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/internal/fsys"
	"sequins/internal/names"
	"sequins/internal/term"
	"sequins/node/daemon"
	"sequins/source"
)

// fileFlags are the flags of the commands that read files: the fields of Avro and Parquet records, and where settings come from.
type fileFlags struct {
	key, value string
	columns    bool
	config, db string
}

func (f *fileFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.key, "key", "", "`field` of the key in Avro and Parquet records")
	flags.StringVar(&f.value, "value", "", "`field` of the value; without one, the whole record as JSON")
	flags.BoolVar(&f.columns, "partition-columns", false, "add the columns in the names of directories to whole records")
	flags.StringVar(&f.config, "config", "", "configuration `file` with the settings of the database and of the source")
	flags.StringVar(&f.db, "db", "", "`name` of the database in that file (default: of the directory above the version's)")
}

// over returns the settings of a database with those of the flags.
func (f *fileFlags) over(db config.DB) config.DB {
	db.Key, db.Value = cmp.Or(f.key, db.Key), cmp.Or(f.value, db.Value)
	db.PartitionColumns = db.PartitionColumns || f.columns
	return db
}

// fileHelp is the part of the help texts about where files can be.
const fileHelp = `

FILE is a path, or the URL of a file of a version in a remote source that nodes read,
<source>/<db>/<version>/<file>. The tables of --config for its source, such as
[s3], hold; without it, credentials are those of the environment. The fields of
Avro and Parquet records are --key and --value, or those of [db.<name>] of --config.

The directory of the version, below which directories column=value are columns, is
the first directory above FILE that is not named column=value.`

// files opens data files for one command.
type files struct {
	flags   *fileFlags
	ctx     context.Context
	report  io.Writer                  // for progress
	config  *config.Config             // nil before it is needed
	sources map[string]source.Source   // by URL
	listed  map[string]source.Contents // of versions, by directory
}

// files calls run with what opens files, and closes their sources.
func (f *fileFlags) files(cmd *cobra.Command, run func(open *files) error) error {
	if f.value != "" && f.key == "" {
		return usageError(errors.New("--value needs --key"))
	}
	open := &files{flags: f, ctx: cmd.Context(), report: cmd.ErrOrStderr(),
		sources: make(map[string]source.Source), listed: make(map[string]source.Contents)}
	return run(open)
}

// dataFile is where a data file is: on this machine, or in a source.
type dataFile struct {
	path string // for people
	size int64
	open func(offset int64) (io.ReadCloser, error)
	err  error // why it cannot be opened, with its exit code

	version location
	name    string // relative to the directory of the version
	remote  bool
	found   bool // in a directory, and not named
}

// failed gives an error of the file its exit code.
func (d dataFile) failed(err error) error { return ofFile(err, d.remote) }

// find returns the file that an argument names.
func (f *files) find(arg string) dataFile {
	all := f.expand(arg)
	if len(all) != 1 || all[0].found {
		return dataFile{path: arg, err: fmt.Errorf("%s is a directory: name a file in it", arg)}
	}
	return all[0]
}

// expand returns the file that an argument names, or the data files of the version, or below the local directory, that it names. What cannot
// be looked at is a file with an error.
func (f *files) expand(arg string) []dataFile {
	if isRemote(arg) {
		return f.remote(strings.TrimRight(arg, "/"))
	}
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		return f.walk(arg)
	}
	return []dataFile{f.local(arg, location{})}
}

// local returns the file at a path of this machine. within is the directory in which it was found: that of the version, if the file would
// be one of a version there. Otherwise that is found from the names of directories.
func (f *files) local(path string, within location) dataFile {
	d := dataFile{path: path, open: func(offset int64) (io.ReadCloser, error) { return openLocal(path, offset) }}
	full, err := filepath.Abs(path)
	if err != nil {
		d.err = ofFile(err, false)
		return d
	}
	d.version, d.name = guessVersion(full)
	if name, below := strings.CutPrefix(full, within.dir+"/"); below && inVersion(name) {
		d.version, d.name = within, name
	}
	file, err := openLocal(path, 0)
	if err != nil {
		d.err = ofFile(err, false)
		return d
	}
	info, err := file.Stat()
	if d.err = ofFile(errors.Join(err, file.Close()), false); d.err == nil {
		d.size = info.Size()
	}
	return d
}

// openLocal opens a file of this machine at an offset.
func openLocal(path string, offset int64) (*os.File, error) {
	f, err := fsys.OpenRegular(path, os.O_RDONLY) // to open another one could block forever
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// walk returns the files below a local directory.
func (f *files) walk(dir string) (all []dataFile) {
	add := func(d dataFile) {
		if d.found = true; !errors.Is(d.err, fs.ErrNotExist) { // a running sequins may have removed it
			all = append(all, d)
		}
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return []dataFile{{path: dir, err: ofFile(err, false)}}
	}
	within, root := versionAt(full), strings.TrimRight(dir, "/")+"/"                   // which is followed if it is a link
	_ = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error { // only this function could fail
		switch {
		case err != nil:
			add(dataFile{path: file, err: ofFile(err, false)})
		case file != root && source.Hidden(entry.Name()) && entry.IsDir():
			return filepath.SkipDir
		case entry.Type().IsRegular() && !source.Hidden(entry.Name()) && !withoutRecords(entry.Name()):
			add(f.local(file, within))
		}
		return nil
	})
	return all
}

// remote returns the file of a source that an argument names, or all files of the version that it names.
func (f *files) remote(arg string) []dataFile {
	err := usageError(fmt.Errorf("%s is not a file of a version: <source>/<db>/<version>/<file>", arg))
	guess, _ := guessVersion(arg)
	for _, l := range []location{guess, versionAt(arg)} {
		if !l.valid() {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(arg, l.dir), "/") // "" is all of the version
		all, lerr := f.versionFiles(l, name)
		switch {
		case lerr == nil && (name == "" || len(all) > 0):
			return all
		case lerr != nil && codeOf(lerr) != exitAbsent:
			return []dataFile{{path: arg, err: lerr}}
		}
		err = withCode(exitAbsent, &fs.PathError{Op: "open", Path: arg, Err: fs.ErrNotExist})
	}
	return []dataFile{{path: arg, err: err}}
}

// versionFiles returns the file of a name in a version in a source, or with "" all data files of the version.
func (f *files) versionFiles(l location, name string) (all []dataFile, err error) {
	src, err := f.open(l.source)
	if err != nil {
		return nil, err
	}
	c, err := f.contents(l)
	if err != nil {
		return nil, err
	}
	for _, file := range c.Files {
		if name == "" && withoutRecords(path.Base(file.Name)) || name != "" && file.Name != name {
			continue
		}
		all = append(all, dataFile{
			path: src.Path(l.db, l.version) + "/" + file.Name, size: file.Size, version: l, name: file.Name, remote: true, found: name == "",
			open: func(offset int64) (io.ReadCloser, error) {
				return src.Open(f.ctx, l.db, l.version, file, source.ReadOptions{Offset: offset})
			},
		})
	}
	return all, nil
}

// contents returns the files of a version.
func (f *files) contents(l location) (source.Contents, error) {
	if c, known := f.listed[l.dir]; known {
		return c, nil
	}
	src, err := f.open(l.source)
	if err != nil {
		return source.Contents{}, err
	}
	p := term.NewCount(f.report, "listing "+l.dir, "file")
	c, err := src.Contents(f.ctx, l.db, l.version)
	if p.Stop(); err == nil {
		f.listed[l.dir] = c
	}
	return c, ofFile(err, isRemote(l.source))
}

// siblings returns the data files of the version of a file, none if they are not known.
func (f *files) siblings(d dataFile) []source.File {
	c, err := f.contents(d.version)
	if err != nil {
		return nil
	}
	return c.Files
}

// location is the directory of a version, an absolute path or a URL, <source>/<db>/<version>, and its parts.
type location struct{ dir, source, db, version string }

// versionAt takes apart the directory of a version.
func versionAt(dir string) location {
	above, version := path.Split(dir)
	src, db := path.Split(strings.TrimSuffix(above, "/"))
	return location{dir, cmp.Or(strings.TrimSuffix(src, "/"), "/"), db, version}
}

// valid reports whether the names can be those of a database and a version. A URL also needs a host.
func (l location) valid() bool {
	return names.ValidDatabase(l.db) && names.Valid(l.version) && !strings.HasSuffix(l.source, ":/")
}

// guessVersion finds the version of a file by the names of directories: that of the version is the first one above the file that is neither
// that of a MapFile nor named column=value. It also returns the name of the file there.
func guessVersion(file string) (l location, name string) {
	parent := func(dir string) string { return dir[:max(0, strings.LastIndexByte(dir, '/'))] }
	dir := parent(file)
	if path.Base(file) == "data" {
		dir = parent(dir)
	}
	for depth := 0; depth < source.MaxPartitionDepth && source.IsPartition(path.Base(dir)); depth++ {
		dir = parent(dir)
	}
	return versionAt(dir), strings.TrimPrefix(file[len(dir):], "/")
}

// inVersion reports whether a name relative to the directory of a version can be that of one of its files: all directories in
// it are named column=value, but for that of a MapFile.
func inVersion(name string) bool {
	elements := strings.Split(strings.TrimSuffix(name, "/data"), "/")
	dirs := elements[:len(elements)-1]
	return len(dirs) <= source.MaxPartitionDepth && !slices.ContainsFunc(dirs, func(dir string) bool { return !source.IsPartition(dir) })
}

// open opens a source.
func (f *files) open(where string) (source.Source, error) {
	if src := f.sources[where]; src != nil {
		return src, nil
	}
	c := &config.Config{Source: where}
	if isRemote(where) {
		var err error
		if c, err = f.settings(where); err != nil {
			return nil, err
		}
	}
	src, err := daemon.OpenSource(f.ctx, c)
	if err == nil {
		f.sources[where] = src
	}
	return src, err
}

// settings returns the configuration for a source; "" is its own.
func (f *files) settings(where string) (*config.Config, error) {
	if f.config == nil {
		var flags []config.Flag
		if where != "" {
			flags = append(flags, config.Flag{Name: "FILE", Key: "source", Value: where})
		}
		c, _, err := config.Load(f.flags.config, flags...)
		if err != nil {
			return nil, err
		}
		f.config = &c
	}
	c := *f.config
	c.Source = where
	return &c, nil
}

// options returns the settings of the database of a file, of which the fields are used.
func (f *files) options(d dataFile) (db config.DB, err error) {
	if f.flags.config != "" {
		where := ""
		if d.remote {
			where = d.version.source
		}
		c, err := f.settings(where)
		if err != nil {
			return db, err
		}
		db = c.ForDB(cmp.Or(f.flags.db, d.version.db))
	}
	return f.flags.over(db), nil
}

// openFile opens a file for its records.
func (f *files) openFile(d dataFile) (openData, error) {
	if d.err != nil {
		return nil, d.err
	}
	db, err := f.options(d)
	if err != nil {
		return nil, err
	}
	file, err := d.records(db, func() []source.File { return f.siblings(d) })
	if err != nil {
		return nil, d.failed(err)
	}
	return file, nil
}
