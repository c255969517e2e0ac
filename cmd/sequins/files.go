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
	"sequins/input/finished"
	"sequins/internal/fsys"
	"sequins/internal/names"
	"sequins/internal/term"
	"sequins/node/daemon"
	"sequins/source"
)

// fileFlags are the flags of the commands that read files: the fields of Avro and Parquet records, and where settings come from.
type fileFlags struct {
	key, value string
	config     string
	settings   config.Config // what load has read
}

func (f *fileFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.key, "key", "", "`field` of the key in Avro and Parquet records")
	flags.StringVar(&f.value, "value", "", "`field` of the value; without one, the whole record as JSON")
	flags.StringVar(&f.config, "config", "", "configuration `file` with the settings of the database and of the source")
}

// fieldHelp is the part of the help texts about the fields of records.
const fieldHelp = `

The fields of Avro and Parquet records are --key and --value, or those of
[db.<name>] of --config, of the database in whose directory the file is. Columns in
the names of directories are not added to records.`

// load reads --config, with the settings of the sources of those of dirs that are remote.
func (f *fileFlags) load(dirs ...string) (err error) {
	var flags []config.Flag
	if remote := slices.IndexFunc(dirs, isRemote); remote >= 0 { // its URL is checked like a configured source
		flags = append(flags, config.Flag{Name: "DIR", Key: "source", Value: dirs[remote]})
	}
	if f.config != "" || flags != nil {
		f.settings, _, err = config.Load(f.config, flags...)
	}
	return err
}

// dataFile is a data file of this machine, or of a version in a source.
type dataFile struct {
	path string // for people
	size int64
	open func(offset int64) (io.ReadCloser, error)
	err  error // why it cannot be opened, with its exit code

	want  *finished.Block // what the manifest beside it says of it; nil if there is none
	db    string          // of its version
	found bool            // below a directory of this machine, and not named
}

// failed gives an error of the file its exit code.
func (d dataFile) failed(err error) error { return ofFile(err, isRemote(d.path)) }

// expand returns the file that an argument names, or the data files of the version, or below the local directory, that it names. What cannot
// be looked at is a file with an error.
func (f *fileFlags) expand(ctx context.Context, report io.Writer, arg string) []dataFile {
	if isRemote(arg) {
		all, err := f.version(ctx, report, strings.TrimRight(arg, "/"))
		if err != nil {
			return []dataFile{{path: arg, err: err}}
		}
		return all
	}
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		return walk(arg, make(map[string]bool))
	}
	return []dataFile{localFile(arg)}
}

func localFile(path string) dataFile {
	d := dataFile{path: path, open: func(offset int64) (io.ReadCloser, error) { return openLocal(path, offset) }}
	if full, err := filepath.Abs(path); err == nil {
		d.db = guessVersion(full).db
	}
	if info, err := os.Stat(path); err == nil { // otherwise, it cannot be opened either
		d.size = info.Size()
	}
	return d
}

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

// walk returns the files below a local directory. Links to directories, which can lead back, are followed to each once: seen has their paths.
func walk(dir string, seen map[string]bool) (all []dataFile) {
	real, err := filepath.EvalSymlinks(dir)
	if seen[real] && err == nil {
		return nil
	}
	seen[real] = true
	isFile := func(path string) bool { // or a link to one
		info, err := os.Stat(path)
		return err == nil && info.Mode().IsRegular()
	}
	var manifests []dataFile
	root := strings.TrimRight(dir, "/") + "/"                                          // which is followed if it is a link
	_ = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error { // only this function could fail
		regular := isFile(file)
		switch {
		case err != nil:
			all = append(all, dataFile{path: file, err: ofFile(err, false), found: file != root})
		case file != root && source.Hidden(entry.Name()) && entry.IsDir():
			return filepath.SkipDir
		case !regular && entry.Type() == fs.ModeSymlink && !source.Hidden(entry.Name()):
			all = append(all, walk(file, seen)...)
		case (entry.Name() == "index" || entry.Name() == "bloom") && isFile(filepath.Join(filepath.Dir(file), "data")): // of a MapFile, of which a load reads data
		case regular && entry.Name() == source.BlocksFile:
			manifests = append(manifests, localFile(file))
		case regular && !source.Hidden(entry.Name()) && !withoutRecords(entry.Name()):
			d := localFile(file)
			d.found = true
			all = append(all, d)
		}
		return nil
	})
	for _, m := range manifests {
		all = matchManifest(m, all)
	}
	return all
}

func (f *fileFlags) version(ctx context.Context, report io.Writer, dir string) ([]dataFile, error) {
	l := versionAt(dir)
	if !l.valid() {
		return nil, usageError(fmt.Errorf("%s is not a version in a source: <source>/<db>/<version>", dir))
	}
	c := f.settings
	c.Source = l.source
	src, err := daemon.OpenSource(ctx, &c)
	if err != nil {
		return nil, err
	}
	p := term.NewProgress(report, "listing "+dir, nil)
	listed, err := src.Contents(ctx, l.db, l.version)
	if p.Stop(); err != nil {
		return nil, ofSource(src, err)
	}
	var all []dataFile
	for _, file := range listed.Files {
		if withoutRecords(path.Base(file.Name)) {
			continue
		}
		all = append(all, dataFile{
			path: src.Path(l.db, l.version) + "/" + file.Name, size: file.Size, db: l.db,
			open: func(offset int64) (io.ReadCloser, error) {
				return src.Open(ctx, l.db, l.version, file, source.ReadOptions{Offset: offset})
			},
		})
	}
	if slices.ContainsFunc(listed.Hidden, func(m source.Marker) bool { return m.Name == source.BlocksFile }) {
		all = matchManifest(manifestIn(ctx, src, l.db, l.version), all)
	}
	return all, nil
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
// that of a MapFile nor named column=value.
func guessVersion(file string) location {
	dir := path.Dir(file)
	if path.Base(file) == "data" {
		dir = path.Dir(dir)
	}
	for depth := 0; depth < source.MaxPartitionDepth && source.IsPartition(path.Base(dir)); depth++ {
		dir = path.Dir(dir)
	}
	return versionAt(dir)
}

// open opens a file for its records, with the fields that are set for its database.
func (f *fileFlags) open(d dataFile) (openData, error) {
	if d.err != nil {
		return nil, d.err
	}
	format, err := d.format()
	if err != nil {
		return nil, d.failed(err)
	}
	db := f.settings.ForDB(d.db)
	file, err := d.records(format, cmp.Or(f.key, db.Key), cmp.Or(f.value, db.Value))
	return file, d.failed(err)
}
