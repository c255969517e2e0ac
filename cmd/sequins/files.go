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
	"sync"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/internal/names"
	"sequins/internal/term"
	"sequins/load"
	"sequins/source"
)

// fileFlags are the flags of the commands that read files: where settings come from, and the fields of Avro and Parquet.
type fileFlags struct {
	config, source, db string
	key, value         string
	columns            bool
}

// register registers the flags. fields reports whether the command shows keys and values.
func (f *fileFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.key, "key", "", "`field` of the key in Avro and Parquet records")
	flags.StringVar(&f.value, "value", "", "`field` of the value; without one, the whole record as JSON")
	flags.BoolVar(&f.columns, "partition-columns", false, "add the columns in the names of directories to whole records")
	flags.StringVar(&f.config, "config", "", "configuration `file` with the fields of the database, and the settings of its source")
	flags.StringVar(&f.source, "source", "", "source of the data: a `directory` or URL")
	flags.StringVar(&f.db, "db", "", "`name` of the database in that file (default: of the directory above the version's)")
}

// fileHelp is the part of the help texts about where files can be.
const fileHelp = `

FILE is a path, or the URL of a file of a version in any source that nodes read,
<source>/<db>/<version>/<file>. The tables of --config for its source, such as
[s3], hold; without it, credentials are those of the environment. The fields of
Avro and Parquet records are --key and --value, or those of [db.<name>] of --config.

The directory of the version, below which directories column=value are columns, is
that of <source>/<db>/<version> if FILE is in the source of --source, --config or
sequins.conf; otherwise it is the first directory above FILE that is not named
column=value.`

// files opens data files for one command.
type files struct {
	flags   *fileFlags
	ctx     context.Context
	report  io.Writer                // for progress
	source  func() string            // the configured source, "" if there is none
	sources map[string]source.Source // by URL
	configs map[string]*config.Config
}

func (f *fileFlags) files(cmd *cobra.Command) (*files, error) {
	if f.value != "" && f.key == "" {
		return nil, usageError(errors.New("--value needs --key"))
	}
	return &files{flags: f, ctx: cmd.Context(), report: cmd.ErrOrStderr(), source: sync.OnceValue(f.configured), sources: make(map[string]source.Source), configs: make(map[string]*config.Config)}, nil
}

// configured returns the source of --source, of --config, or of the configuration that a node would find, "" if there is
// none. Whether the configuration is good does not matter here. One that can be read only once, as a pipe, is not read.
func (f *fileFlags) configured() string {
	where := f.source
	if where == "" {
		c, _, _ := config.Reload(cmp.Or(f.config, config.Find(config.SearchPath)))
		where = c.Source
	}
	if isRemote(where) || where == "" {
		return where
	}
	if path, err := localPath(where); err == nil {
		where = path
	}
	full, err := filepath.Abs(where)
	if err != nil {
		return ""
	}
	return full
}

// Close closes the sources.
func (f *files) Close() error {
	var errs []error
	for _, src := range f.sources {
		errs = append(errs, closeSource(src))
	}
	return errors.Join(errs...)
}

// dataFile is where a data file is: on this machine, or in a source.
type dataFile struct {
	path string // for people
	size int64
	name string // relative to the version's directory
	open func(offset int64) (io.ReadCloser, error)
	// siblings returns the data files of its version, in order, and whether they are known.
	siblings func() ([]source.File, bool)

	local, dir string // its path and the version's directory, of a file on this machine
	source, db string // the URL or path of the source and the database, for the configuration; "" if unknown
	remote     bool
	// found reports whether the file was found in a directory and not named. A directory of a running sequins may lose it
	// meanwhile.
	found bool
}

// failed gives an error of the file its exit code.
func (d dataFile) failed(err error) error { return ofFile(err, d.remote) }

// find returns the file that an argument names. A directory is an error of the type *dirError.
func (f *files) find(arg string) (dataFile, error) {
	if isRemote(arg) {
		return f.findRemote(arg)
	}
	path, err := localPath(arg)
	if err != nil {
		return dataFile{}, err
	}
	return f.local(path, "", "")
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

// local returns the file at a path of this machine. If it was found below a directory, that is dir, as it was named, and
// rel is the path below it. The directory of the version is that of the structure of the configured source; otherwise dir,
// if the file would be one of a version there; otherwise it is found from the names of directories.
func (f *files) local(path, dir, rel string) (dataFile, error) {
	version, name, known := f.inSource(cmp.Or(filepath.Join(dir, rel), path))
	if !known && rel != "" && inVersion(rel) {
		version, name, known = dir, rel, true
	}
	d, err := localFile(path)
	if known {
		d, err = localFileOf(path, version, name)
	}
	if err != nil {
		return dataFile{}, ofFile(err, false)
	}
	if full, err := filepath.Abs(d.dir); err == nil {
		d.source, d.db = cmp.Or(f.source(), filepath.Dir(filepath.Dir(full))), filepath.Base(filepath.Dir(full))
	}
	return d, nil
}

// inSource splits the path of a file in the configured source into the directory of its version and its name in it.
func (f *files) inSource(path string) (version, name string, ok bool) {
	root := f.source()
	full, err := filepath.Abs(path)
	if root == "" || isRemote(root) || err != nil {
		return "", "", false
	}
	if version, name, ok = below(root, full); ok {
		return version, name, true
	}
	root, err = filepath.EvalSymlinks(root)
	resolved, rerr := filepath.EvalSymlinks(full)
	if err != nil || rerr != nil {
		return "", "", false
	}
	return below(root, resolved)
}

// below splits the path of a file, <root>/<db>/<version>/<name>.
func below(root, path string) (version, name string, ok bool) {
	rel, err := filepath.Rel(root, path)
	elements := strings.SplitN(filepath.ToSlash(rel), "/", 3)
	if err != nil || len(elements) < 3 || !names.ValidDatabase(elements[0]) || !names.Valid(elements[1]) || !inVersion(elements[2]) {
		return "", "", false
	}
	return filepath.Join(root, elements[0], elements[1]), elements[2], true
}

// inVersion reports whether a name relative to the directory of a version can be that of one of its files: all directories in
// it are named column=value, but for that of a MapFile.
func inVersion(name string) bool {
	elements := strings.Split(strings.TrimSuffix(name, "/data"), "/")
	dirs := elements[:len(elements)-1]
	return len(dirs) <= source.MaxPartitionDepth && !slices.ContainsFunc(dirs, func(dir string) bool { return !source.IsPartition(dir) })
}

// location is a URL taken apart: <source>/<db>/<version>/<name>, where name is "" for a directory.
type location struct{ source, db, version, name string }

// split takes the URL of a version's directory apart, which ends after n elements of the path; the rest is the name.
func split(arg string, elements []string, n int) (l location, ok bool) {
	if n < 2 {
		return l, false
	}
	scheme, rest, _ := strings.Cut(arg, "://")
	host, _, _ := strings.Cut(rest, "/")
	l = location{
		source: scheme + "://" + host + "/" + strings.Join(elements[:n-2], "/"),
		db:     elements[n-2], version: elements[n-1], name: strings.Join(elements[n:], "/"),
	}
	return l, names.ValidDatabase(l.db) && names.Valid(l.version)
}

// elementsOf returns the elements of the path of a URL.
func elementsOf(arg string) []string {
	_, rest, _ := strings.Cut(arg, "://")
	_, p, _ := strings.Cut(rest, "/")
	return strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
}

// errLocation is the error for a URL that is too short or has other names than a source.
func errLocation(arg string) error {
	return usageError(fmt.Errorf("%s is not a file of a version: <source>/<db>/<version>/<file>", arg))
}

// findRemote finds a file of a source.
func (f *files) findRemote(arg string) (dataFile, error) {
	elements := elementsOf(arg)
	n, known := f.versionIn(arg, elements)
	if !known {
		n = len(elements) - 1
		if n > 0 && elements[n] == "data" { // of a MapFile
			n--
		}
		for n > 2 && source.IsPartition(elements[n-1]) {
			n--
		}
	}
	l, ok := split(arg, elements, n)
	if !ok {
		return dataFile{}, errLocation(arg)
	}
	all, err := f.version(l)
	if err != nil {
		return dataFile{}, err
	}
	for _, d := range all {
		if d.name == l.name || d.name == l.name+"/data" {
			return d, nil
		}
	}
	if _, err := f.findVersion(arg); err == nil {
		return dataFile{}, &dirError{arg}
	}
	return dataFile{}, withCode(exitAbsent, &fs.PathError{Op: "open", Path: arg, Err: fs.ErrNotExist})
}

// versionIn returns after how many elements of the path the URL of a file in the configured source has that of its version.
func (f *files) versionIn(arg string, elements []string) (n int, ok bool) {
	root := f.source()
	if !isRemote(root) {
		return 0, false
	}
	above := elementsOf(root)
	n = len(above) + 2
	if hostOf(arg) != hostOf(root) || len(elements) <= n || !slices.Equal(above, elements[:len(above)]) {
		return 0, false
	}
	return n, true
}

// hostOf returns the scheme and the host of a URL.
func hostOf(arg string) string {
	scheme, rest, _ := strings.Cut(arg, "://")
	host, _, _ := strings.Cut(rest, "/")
	return strings.ToLower(scheme + "://" + host)
}

// instead returns the data files of the version that a URL names for which find has returned an error. If it names none,
// the error stays.
func (f *files) instead(arg string, failed error) ([]dataFile, error) {
	var dir *dirError
	if !isRemote(arg) || !errors.As(failed, &dir) && codeOf(failed) != exitAbsent && codeOf(failed) != exitUsage {
		return nil, failed
	}
	found, err := f.findVersion(arg)
	if err != nil {
		return nil, failed
	}
	return found, nil
}

// findVersion returns the files of the version whose directory a URL names, without those whose names show that they have
// no records.
func (f *files) findVersion(arg string) ([]dataFile, error) {
	elements := elementsOf(arg)
	l, ok := split(arg, elements, len(elements))
	if !ok {
		return nil, errLocation(arg)
	}
	all, err := f.version(l)
	return slices.DeleteFunc(all, func(d dataFile) bool { return withoutRecords(path.Base(d.name)) }), err
}

// version returns the data files of a version in a source.
func (f *files) version(l location) ([]dataFile, error) {
	src, err := f.open(l.source)
	if err != nil {
		return nil, err
	}
	p := term.NewCount(f.report, "listing "+src.Path(l.db, l.version), "file", 0)
	c, err := src.Contents(f.ctx, l.db, l.version)
	p.Stop()
	if err != nil {
		return nil, ofFile(err, true)
	}
	all := make([]dataFile, len(c.Files))
	for i, file := range c.Files {
		all[i] = dataFile{
			path: src.Path(l.db, l.version) + "/" + file.Name, size: file.Size, name: file.Name,
			open: func(offset int64) (io.ReadCloser, error) {
				return src.Open(f.ctx, l.db, l.version, file, source.ReadOptions{Offset: offset})
			},
			siblings: func() ([]source.File, bool) { return c.Files, true },
			source:   l.source, db: l.db, remote: true,
		}
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

// settings returns the configuration for a source.
func (f *files) settings(where string) (*config.Config, error) {
	if c := f.configs[where]; c != nil {
		return c, nil
	}
	c, _, err := config.Load(f.flags.config, config.Flag{Name: "FILE", Key: "source", Value: where})
	if err != nil {
		return nil, err
	}
	f.configs[where] = &c
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

// openNamed opens the file that an argument names.
func (f *files) openNamed(arg string, keys bool) (d dataFile, file openData, err error) {
	if d, err = f.find(arg); err == nil {
		file, err = f.openFile(d, keys)
	}
	return d, file, err
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

// walk calls each for the files below a local directory that may have records, and for the manifests of finished blocks.
// each also gets the path below the directory.
func walk(dir string, each func(path, rel string), manifest func(path string), failed func(path string, err error)) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			failed(file, err)
			return nil
		case file != root && source.Hidden(entry.Name()):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			if entry.Name() == source.BlocksFile {
				manifest(file)
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(root, file)
		each(file, rel)
		return err
	})
}

// isLocalDir reports whether an argument is a directory of this machine that is not a MapFile.
func isLocalDir(arg string) bool {
	if isRemote(arg) {
		return false
	}
	p, err := localPath(arg)
	if err != nil {
		return false
	}
	return isDir(p) && !isMapFile(p)
}

// localFile returns where a file of this machine is. The directory of a MapFile means its data file. The directory of its version
// is the first one above it that is not named column=value.
func localFile(path string) (dataFile, error) {
	if isMapFile(path) { // its directory may be named column=value, too
		dir, name := splitLocal(filepath.Join(path, "data"))
		return localFileOf(path, dir, strings.TrimSuffix(name, "/data"))
	}
	dir, name := splitLocal(path)
	return localFileOf(path, dir, name)
}

// localFileOf is localFile for a file whose version is known: dir is its directory, and name that of the file in it.
func localFileOf(path, dir, name string) (dataFile, error) {
	if data := filepath.Join(path, "data"); isDir(path) && !isDir(data) {
		if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
			return dataFile{}, &dirError{path}
		}
		path = data
		name += "/data"
	}
	info, err := os.Stat(path)
	if err != nil {
		return dataFile{}, &fs.PathError{Op: "open", Path: path, Err: unwrapPath(err)}
	}
	if !info.Mode().IsRegular() { // to open it could block forever
		return dataFile{}, &fs.PathError{Op: "open", Path: path, Err: errIrregular}
	}
	return dataFile{
		path: path, size: info.Size(), name: name, dir: dir, local: path,
		open:     func(offset int64) (io.ReadCloser, error) { return openLocal(path, offset) },
		siblings: func() ([]source.File, bool) { return localFiles(dir) },
	}, nil
}

// dirError is the error for a directory that is not that of a MapFile.
type dirError struct{ path string }

// Error implements error.
func (e *dirError) Error() string {
	return e.path + " is a directory, and not that of a MapFile: name a file in it"
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

// splitLocal splits the path of a file into the directory of its version and its name in it. The name has the directories
// column=value of a partitioned table, and that of a MapFile.
func splitLocal(path string) (dir, name string) {
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
