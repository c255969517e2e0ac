package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"sequins/internal/human"
	"sequins/source"
)

// checkSource lists the databases and reads one byte of one file.
func (d *deep) checkSource(ctx context.Context) finding {
	src, err := d.source()
	if err != nil {
		return failed("%v%s", err, advice(err))
	}
	as, err := source.Identity(ctx, src)
	if err != nil {
		return failed("%v%s", err, advice(err))
	}
	if as != "" {
		as = ", as " + as
	}
	dbs, err := source.Databases(ctx, src)
	if err != nil {
		return failed("its databases cannot be listed%s: %v%s", as, err, advice(err))
	}
	if len(dbs) == 0 {
		return warned("%s has no databases%s: is it the right place, and mounted?", d.c.Source, as)
	}
	read, err := readOneByte(ctx, src, dbs)
	switch {
	case read == "" && err != nil:
		return failed("%s, and no file can be read%s: %v%s", human.Plural(len(dbs), "database"), as, err, advice(err))
	case err != nil:
		return warned("%s, of which not all can be read%s: %v%s", human.Plural(len(dbs), "database"), as, err, advice(err))
	case read == "":
		return warned("%s without a file to read%s", human.Plural(len(dbs), "database"), as)
	}
	return found("%s; %s can be read%s", human.Plural(len(dbs), "database"), read, as)
}

// maxTried limits the databases in which a file to read is looked for.
const maxTried = 20

// readOneByte reads the first byte of a file of the first database that has one, and returns the path of the file. The error is the first one,
// if there was any.
func readOneByte(ctx context.Context, src source.Source, dbs []string) (path string, first error) {
	for _, db := range dbs[:min(len(dbs), maxTried)] {
		path, err := readIn(ctx, src, db)
		if first == nil {
			first = err
		}
		if path != "" || ctx.Err() != nil {
			return path, first
		}
	}
	return "", first
}

func readIn(ctx context.Context, src source.Source, db string) (path string, err error) {
	versions, err := source.Versions(ctx, src, db)
	if err != nil {
		return "", fmt.Errorf("the versions of %s: %w", db, err)
	}
	for _, version := range slices.Backward(versions) {
		contents, err := src.Contents(ctx, db, version)
		if err != nil {
			return "", fmt.Errorf("the files of %s: %w", src.Path(db, version), err)
		}
		for _, f := range contents.Files {
			if f.Size == 0 {
				continue
			}
			if err := readByte(ctx, src, db, version, f); err != nil {
				return "", err
			}
			return src.Path(db, version) + "/" + f.Name, nil
		}
	}
	return "", nil
}

func readByte(ctx context.Context, src source.Source, db, version string, f source.File) error {
	r, err := src.Open(ctx, db, version, f, source.ReadOptions{})
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		return errors.Join(fmt.Errorf("reading %s/%s: %w", src.Path(db, version), f.Name, err), r.Close())
	}
	_ = r.Close() // a close before the end may say that the rest was not read
	return nil
}

// sourceSizes are the sizes of the newest versions in the source.
type sourceSizes struct {
	newest map[string]newestVersion // by database
	left   int                      // databases that were not looked at
}

type newestVersion struct {
	name  string
	files []source.File
}

// maxMeasured limits the databases that are measured.
const maxMeasured = 2000

// measureSource lists the files of the newest version of each database.
func (d *deep) measureSource(ctx context.Context) (sizes sourceSizes, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	src, err := d.source()
	if err != nil {
		return sizes, err
	}
	dbs, err := source.Databases(ctx, src)
	if err != nil {
		return sizes, err
	}
	sizes.newest = make(map[string]newestVersion)
	for i, db := range dbs {
		if i == maxMeasured || ctx.Err() != nil {
			sizes.left = len(dbs) - i
			return sizes, nil
		}
		if newest, err := newestOf(ctx, src, db); err == nil && newest.name != "" { // that it cannot be read is another check
			sizes.newest[db] = newest
		}
	}
	return sizes, nil
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
