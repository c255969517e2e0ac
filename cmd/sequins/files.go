package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sequins/config"
	"sequins/internal/fsys"
	"sequins/internal/names"
	"sequins/internal/term"
	"sequins/load"
	"sequins/source"
	"sequins/source/local"
)

// fieldFlags are the flags that select fields of Avro and Parquet records.
type fieldFlags struct {
	key, value string
	columns    bool
}

func (f *fieldFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.key, "key", "", "`field` of the key in Avro and Parquet records")
	flags.StringVar(&f.value, "value", "", "`field` of the value; without one, the whole record as JSON")
	flags.BoolVar(&f.columns, "partition-columns", false, "add the columns in the names of directories to whole records")
}

// fileFlags are the flags of the commands that read files: where settings come from, and the fields of Avro and Parquet.
type fileFlags struct {
	fieldFlags
	config, db string
}

func (f *fileFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	f.fieldFlags.register(flags)
	flags.StringVar(&f.config, "config", "", "configuration `file` with the fields of the database, and the settings of its source")
	flags.StringVar(&f.db, "db", "", "`name` of the database in that file (default: of the directory above the version's)")
}

// fileHelp is the part of the help texts about where files can be.
const fileHelp = `

FILE is a path, or the URL of a file of a version in any source that nodes read,
<source>/<db>/<version>/<file>. The tables of --config for its source, such as
[s3], hold; without it, credentials are those of the environment. The fields of
Avro and Parquet records are --key and --value, or those of [db.<name>] of --config.

The directory of the version, below which directories column=value are columns, is
the first directory above FILE that is not named column=value.`

// files opens data files for one command.
type files struct {
	flags   *fileFlags
	ctx     context.Context
	report  io.Writer                // for progress
	config  *config.Config           // nil before it is needed
	sources map[string]source.Source // by URL
	listed  map[string][]source.File // the data files of versions on this machine, by directory
}

// files calls run with what opens files, and closes their sources.
func (f *fileFlags) files(cmd *cobra.Command, run func(open *files) error) error {
	if f.value != "" && f.key == "" {
		return usageError(errors.New("--value needs --key"))
	}
	open := &files{flags: f, ctx: cmd.Context(), report: cmd.ErrOrStderr(),
		sources: make(map[string]source.Source), listed: make(map[string][]source.File)}
	return run(open)
}

// dataFile is where a data file is: on this machine, or in a source.
type dataFile struct {
	path string // for people
	size int64
	name string // relative to the version's directory
	open func(offset int64) (io.ReadCloser, error)
	// siblings returns the data files of its version, in order, and whether they are known.
	siblings func() ([]source.File, bool)

	local      string // its path, of a file on this machine
	source, db string // the URL of the source, and the database, for the configuration; "" if unknown
	remote     bool
	// found reports whether the file was found in a directory and not named. A directory of a running sequins may lose it
	// meanwhile.
	found bool
}

// failed gives an error of the file its exit code.
func (d dataFile) failed(err error) error { return ofFile(err, d.remote) }

// isManifest reports whether the file was found as a manifest of finished blocks, which has no records.
func (d dataFile) isManifest() bool { return d.found && path.Base(d.path) == source.BlocksFile }

// find returns the file that an argument names.
func (f *files) find(arg string) (dataFile, error) {
	if isRemote(arg) {
		all, isVersion, err := f.remote(arg)
		if err == nil && isVersion {
			err = errDirectory(arg)
		}
		if err != nil {
			return dataFile{}, err
		}
		return all[0], nil
	}
	path, err := localPath(arg)
	if err != nil {
		return dataFile{}, err
	}
	return f.local(path, "", "")
}

// errDirectory is the error for a directory that is not that of a MapFile.
func errDirectory(path string) error {
	return fmt.Errorf("%s is a directory, and not that of a MapFile: name a file in it", path)
}

// localPath returns the path of an argument that may be a file:// URL.
func localPath(arg string) (string, error) {
	if !strings.HasPrefix(strings.ToLower(arg), "file:") {
		return arg, nil
	}
	u, err := url.Parse(arg)
	if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", usageError(fmt.Errorf("%q is not of the form file:///path", arg))
	}
	return u.Path, nil
}

// local returns the file at a path of this machine. The directory of a MapFile means its data file. If the file was found below a
// directory, that is dir, as it was named, and rel is the path below it: dir is that of the version, if the file would be one of a version
// there. Otherwise that is found from the names of directories.
func (f *files) local(path, dir, rel string) (dataFile, error) {
	switch {
	case isMapFile(path):
		path, rel = filepath.Join(path, "data"), ""
	case isDir(path):
		return dataFile{}, errDirectory(path)
	}
	full, err := filepath.Abs(cmp.Or(filepath.Join(dir, rel), path))
	if err != nil {
		return dataFile{}, err
	}
	l := guessVersion(full)
	if rel != "" && inVersion(rel) {
		l = wholeVersion(strings.TrimSuffix(full, "/"+rel))
		l.name = rel
	}
	file, err := fsys.OpenRegular(path, os.O_RDONLY) // to open another one could block forever
	if err != nil {
		return dataFile{}, ofFile(err, false)
	}
	info, err := file.Stat()
	if err = errors.Join(err, file.Close()); err != nil {
		return dataFile{}, ofFile(err, false)
	}
	return dataFile{
		path: path, size: info.Size(), name: l.name, local: path, db: l.db, open: opener(path),
		siblings: func() ([]source.File, bool) { return f.siblings(l) },
	}, nil
}

// opener returns what opens a file of this machine at an offset.
func opener(path string) func(offset int64) (io.ReadCloser, error) {
	return func(offset int64) (io.ReadCloser, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		if _, err := f.Seek(offset, io.SeekStart); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
}

// siblings returns the data files of a version on this machine, and whether they are known.
func (f *files) siblings(l location) ([]source.File, bool) {
	if _, known := f.listed[l.dir]; !known {
		src, err := local.New(cmp.Or(l.source, "/"))
		if err != nil {
			return nil, false
		}
		c, err := src.Contents(f.ctx, l.db, l.version)
		if err != nil {
			return nil, false
		}
		f.listed[l.dir] = c.Files
	}
	return f.listed[l.dir], true
}

// location is an absolute path or a URL taken apart: <source>/<db>/<version>/<name>, where name is "" for a directory.
type location struct {
	source, db, version, name string
	dir                       string // of the version
}

// valid reports whether the names can be those of a database and a version.
func (l location) valid() bool { return names.ValidDatabase(l.db) && names.Valid(l.version) }

// hostAndPath splits a URL, or a path of this machine, whose host is "".
func hostAndPath(arg string) (host string, elements []string) {
	if scheme, rest, isURL := strings.Cut(arg, "://"); isURL {
		name, _, _ := strings.Cut(rest, "/")
		host, arg = scheme+"://"+name, rest[len(name):]
	}
	return host, strings.FieldsFunc(arg, func(r rune) bool { return r == '/' })
}

// split takes a path apart, of which n elements are the directory of the version.
func split(host string, elements []string, n int) location {
	n = max(n, 0)
	l := location{dir: host + "/" + strings.Join(elements[:n], "/"), name: strings.Join(elements[n:], "/")}
	if n >= 2 {
		l.source, l.db, l.version = host+"/"+strings.Join(elements[:n-2], "/"), elements[n-2], elements[n-1]
	}
	return l
}

// wholeVersion takes apart the path or URL of the directory of a version.
func wholeVersion(arg string) location {
	host, elements := hostAndPath(arg)
	return split(host, elements, len(elements))
}

// guessVersion takes apart the path or URL of a file by the names of directories: that of its version is the first one above it that is
// neither that of a MapFile nor named column=value.
func guessVersion(arg string) location {
	host, elements := hostAndPath(arg)
	n := len(elements) - 1
	if n > 0 && elements[n] == "data" {
		n--
	}
	for depth := 0; depth < source.MaxPartitionDepth && n > 2 && source.IsPartition(elements[n-1]); depth++ {
		n--
	}
	return split(host, elements, n)
}

// inVersion reports whether a name relative to the directory of a version can be that of one of its files: all directories in
// it are named column=value, but for that of a MapFile.
func inVersion(name string) bool {
	elements := strings.Split(strings.TrimSuffix(name, "/data"), "/")
	dirs := elements[:len(elements)-1]
	return len(dirs) <= source.MaxPartitionDepth && !slices.ContainsFunc(dirs, func(dir string) bool { return !source.IsPartition(dir) })
}

// remote returns the file of a source that an argument names, or all files of the version that it names, with its manifest.
func (f *files) remote(arg string) (all []dataFile, isVersion bool, err error) {
	err = usageError(fmt.Errorf("%s is not a file of a version: <source>/<db>/<version>/<file>", arg))
	for _, l := range []location{guessVersion(arg), wholeVersion(arg)} {
		if !l.valid() {
			continue
		}
		all, lerr := f.version(l)
		switch {
		case lerr == nil && l.name == "":
			return all, true, nil
		case lerr != nil && codeOf(lerr) != exitAbsent:
			return nil, false, lerr
		}
		for _, d := range all {
			if d.name == l.name || d.name == l.name+"/data" {
				return []dataFile{d}, false, nil
			}
		}
		err = withCode(exitAbsent, &fs.PathError{Op: "open", Path: arg, Err: fs.ErrNotExist})
	}
	return nil, false, err
}

// expand calls found for the file that an argument names, or for the data files and manifests of the version or below the local directory
// that it names, and failed for what cannot be looked at.
func (f *files) expand(arg string, found func(dataFile), failed func(path string, err error)) error {
	if dir, err := localPath(arg); err == nil && !isRemote(arg) && isDir(dir) && !isMapFile(dir) {
		return f.walk(dir, found, failed)
	}
	if !isRemote(arg) {
		d, err := f.find(arg)
		if err == nil {
			found(d)
		}
		return err
	}
	all, isVersion, err := f.remote(arg)
	for _, d := range all {
		if !isVersion || !withoutRecords(path.Base(d.name)) {
			found(d)
		}
	}
	return err
}

// version returns the data files of a version in a source, and its manifest.
func (f *files) version(l location) (all []dataFile, err error) {
	src, err := f.open(l.source)
	if err != nil {
		return nil, err
	}
	p := term.NewCount(f.report, "listing "+src.Path(l.db, l.version), "file")
	c, err := src.Contents(f.ctx, l.db, l.version)
	p.Stop()
	if err != nil {
		return nil, ofFile(err, true)
	}
	here := slices.Clip(c.Files)
	for _, m := range c.Hidden {
		if m.Name == source.BlocksFile {
			here = append(here, m.File)
		}
	}
	for _, file := range here {
		all = append(all, dataFile{
			path: src.Path(l.db, l.version) + "/" + file.Name, size: file.Size, name: file.Name,
			open: func(offset int64) (io.ReadCloser, error) {
				return src.Open(f.ctx, l.db, l.version, file, source.ReadOptions{Offset: offset})
			},
			siblings: func() ([]source.File, bool) { return c.Files, true },
			source:   l.source, db: l.db, remote: true, found: file.Name == source.BlocksFile,
		})
	}
	return all, nil
}

// open opens a source.
func (f *files) open(where string) (source.Source, error) {
	if src := f.sources[where]; src != nil {
		return src, nil
	}
	c, err := f.settings(where)
	if err != nil {
		return nil, err
	}
	src, err := openSource(f.ctx, c)
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

// options returns which fields of a file are the key and the value. Without a key, records are read without.
func (f *files) options(d dataFile) (dataOptions, error) {
	o := dataOptions{Fields: load.Fields{Key: f.flags.key, Value: f.flags.value}, PartitionColumns: f.flags.columns}
	if f.flags.config != "" {
		c, err := f.settings(d.source)
		if err != nil {
			return o, err
		}
		db := c.ForDB(cmp.Or(f.flags.db, d.db))
		if o.Fields.Key == "" {
			o.Fields.Key, o.Fields.Value = db.Key, db.Value
		}
		o.PartitionColumns = o.PartitionColumns || db.PartitionColumns
	}
	o.Fields.NoKey = o.Fields.Key == ""
	return o, nil
}

// named calls run with the file that an argument names. keys reports whether the keys of its records are needed.
func (f *files) named(arg string, keys bool, run func(d dataFile, file openData) error) error {
	d, err := f.find(arg)
	if err != nil {
		return err
	}
	file, err := f.openFile(d, keys)
	if err != nil {
		return err
	}
	return errors.Join(run(d, file), file.Close())
}

// openFile opens a file for its records. keys reports whether their keys are needed.
func (f *files) openFile(d dataFile, keys bool) (openData, error) {
	o, err := f.options(d)
	if err != nil {
		return nil, err
	}
	if keys {
		o.Fields.NoKey = false // without a key it is an error that names the fields
	}
	file, err := openRecords(d, o)
	switch {
	case errors.Is(err, load.ErrField) && o.Fields.Key == "":
		return nil, fmt.Errorf("%w; name the one that is the key with --key", err)
	case err != nil:
		return nil, d.failed(err)
	}
	return file, nil
}

// walk calls found for the files below a local directory, and for the manifests of finished blocks.
func (f *files) walk(dir string, found func(dataFile), failed func(path string, err error)) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ofFile(err, false)
	}
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, file) // it is below
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			failed(file, ofFile(err, false))
		case file != root && source.Hidden(entry.Name()) && entry.IsDir():
			return filepath.SkipDir
		case entry.Name() == source.BlocksFile:
			found(dataFile{path: file, open: opener(file), found: true})
		case entry.Type().IsRegular() && !source.Hidden(entry.Name()):
			d, err := f.local(file, dir, rel)
			if d.found = true; err == nil {
				found(d)
			} else if !errors.Is(err, fs.ErrNotExist) {
				failed(file, err)
			}
		}
		return nil
	})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isMapFile(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "data"))
	return err == nil && !info.IsDir()
}
