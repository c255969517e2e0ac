package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"sequins/input/datafile"
	"sequins/internal/human"
	"sequins/load"
	"sequins/source"
)

// checkSource lists the databases and reads one byte of one file.
func (d *deep) checkSource(ctx context.Context) finding {
	src, err := d.source()
	if err != nil {
		return failedBy(err)
	}
	as, err := source.Identity(ctx, src)
	if err != nil {
		return failedBy(err)
	}
	if as != "" {
		as = ", as " + as
	}
	newest, err := d.newest()
	if err != nil {
		return failedBy(fmt.Errorf("its databases cannot be listed%s: %w", as, err))
	}
	if newest.dbs == 0 {
		return warned("%s has no databases%s: is it the right place, and mounted?", d.c.Source, as)
	}
	dbs := human.Plural(newest.dbs, "database")
	read, err := newest.readByte(ctx, src)
	switch err = errors.Join(newest.unread, err); {
	case err != nil && read == "":
		return failedBy(fmt.Errorf("%s, and no file can be read%s: %w", dbs, as, err))
	case err != nil:
		return warned("%s, of which not all can be read%s: %v", dbs, as, err)
	case read == "":
		return warned("%s without a file to read%s", dbs, as)
	}
	return found("%s; %s can be read%s", dbs, read, as)
}

// newestVersions are the newest versions of the databases in the source.
type newestVersions struct {
	dbs    int                      // how many databases there are
	byDB   map[string]newestVersion // of those that have a version, and were looked at
	left   int                      // databases that were not looked at
	unread error                    // of the first database that cannot be listed
}

type newestVersion struct {
	name  string
	files []source.File
}

// maxListed limits the databases that are listed.
const maxListed = 2000

// listNewest lists the files of the newest version of each database.
func (d *deep) listNewest(ctx context.Context) (all newestVersions, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	src, err := d.source()
	if err != nil {
		return all, err
	}
	dbs, err := source.Databases(ctx, src)
	if err != nil {
		return all, err
	}
	all.dbs, all.byDB = len(dbs), make(map[string]newestVersion)
	for i, db := range dbs {
		if i == maxListed || ctx.Err() != nil {
			all.left = len(dbs) - i
			break
		}
		newest, err := newestOf(ctx, src, db)
		if err != nil && all.unread == nil {
			all.unread = err
		}
		if err == nil && newest.name != "" {
			all.byDB[db] = newest
		}
	}
	return all, nil
}

func newestOf(ctx context.Context, src source.Source, db string) (newest newestVersion, err error) {
	versions, err := source.Versions(ctx, src, db)
	if err != nil || len(versions) == 0 {
		return newest, err
	}
	newest.name = versions[len(versions)-1]
	contents, err := src.Contents(ctx, db, newest.name)
	newest.files = contents.Files
	return newest, err
}

// dataFile returns the first data file of a version that is not empty, nil if there is none.
func (v newestVersion) dataFile() *source.File {
	i := slices.IndexFunc(v.files, func(f source.File) bool { return f.Size > 0 && !load.IsLogIndex(f.Name) })
	if i < 0 {
		return nil
	}
	return &v.files[i]
}

// readByte reads the first byte of a file of one database, and returns its path, "" if there is none.
func (all newestVersions) readByte(ctx context.Context, src source.Source) (path string, err error) {
	for _, db := range slices.Sorted(maps.Keys(all.byDB)) {
		version := all.byDB[db]
		f := version.dataFile()
		if f == nil {
			continue
		}
		path := src.Path(db, version.name) + "/" + f.Name
		r, err := src.Open(ctx, db, version.name, *f, source.ReadOptions{})
		if err != nil {
			return "", err
		}
		_, err = io.ReadFull(r, make([]byte, 1))
		_ = r.Close() // a close before the end may say that the rest was not read
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", path, err)
		}
		return path, nil
	}
	return "", nil
}

// checkFields opens a data file of the newest version of each database, and finds the fields that are configured for it.
func (d *deep) checkFields(ctx context.Context) finding {
	src, serr := d.source()
	newest, err := d.newest()
	if serr != nil || err != nil {
		return warned("no file was opened, as the source cannot be read")
	}
	checked := 0
	var wrong []error
	for _, db := range slices.Sorted(maps.Keys(newest.byDB)) {
		if ctx.Err() != nil {
			break
		}
		if err := d.findFields(ctx, src, db, newest.byDB[db]); err != nil {
			wrong = append(wrong, err)
		}
		checked++
	}
	rest := ""
	if left := newest.left + len(newest.byDB) - checked; left > 0 {
		rest = fmt.Sprintf("; %s were not looked at", human.Plural(left, "database"))
	}
	if len(wrong) > 0 {
		const most = 5
		return failed("%d of %d databases cannot be loaded: %v%s", len(wrong), checked, errors.Join(wrong[:min(len(wrong), most)]...), rest)
	}
	return found("a file of the newest version of %s has what is configured%s", human.Plural(checked, "database"), rest)
}

// findFields opens the first data file of a version that is not empty.
func (d *deep) findFields(ctx context.Context, src source.Source, db string, newest newestVersion) error {
	file := newest.dataFile()
	if file == nil {
		return nil
	}
	c := d.c.ForDB(db)
	at := datafile.InSource(ctx, src, db, newest.name, *file, newest.files)
	if kind, err := at.Sniff(); err != nil || kind != datafile.Avro && kind != datafile.Parquet {
		return err
	}
	f, err := datafile.Open(at, datafile.Options{Fields: load.Fields{Key: c.Key, Value: c.Value}, PartitionColumns: c.PartitionColumns})
	if err != nil {
		return load.ExplainKey(err, db)
	}
	return f.Close()
}
