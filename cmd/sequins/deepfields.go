package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sequins/datafile"
	"sequins/internal/human"
	"sequins/load"
	"sequins/source"
)

// checkFields opens a data file of the newest version of each database, and finds the fields that are configured for it.
func (d *deep) checkFields(ctx context.Context) finding {
	src, serr := d.source()
	sizes, err := d.contents()
	if serr != nil || err != nil {
		return warned("no file was opened, as the source cannot be read")
	}
	var checked int
	var lacking, unread []string
	for _, db := range slices.Sorted(maps.Keys(sizes.newest)) {
		switch err := d.findFields(ctx, src, db, sizes.newest[db]); {
		case ctx.Err() != nil:
			return fieldsFound(checked, sizes.left+len(sizes.newest)-checked, lacking, unread)
		case errors.Is(err, load.ErrField):
			lacking = append(lacking, err.Error())
		case err != nil:
			unread = append(unread, err.Error())
		}
		checked++
	}
	return fieldsFound(checked, sizes.left, lacking, unread)
}

// fieldsFound is the finding of checkFields: the errors of databases whose fields are lacking, and of those whose file cannot be read.
func fieldsFound(checked, left int, lacking, unread []string) finding {
	const most = 5
	list := func(all []string) string { return strings.Join(all[:min(len(all), most)], "; ") }
	rest := ""
	if left > 0 {
		rest = fmt.Sprintf("; %s were not looked at", human.Plural(left, "database"))
	}
	switch {
	case len(lacking) > 0:
		return failed("%d of %d databases cannot be loaded: %s%s", len(lacking), checked, list(lacking), rest)
	case len(unread) > 0:
		return warned("of %d databases, %d have a file that cannot be read: %s%s", checked, len(unread), list(unread), rest)
	}
	return found("a file of the newest version of %s has what is configured%s", human.Plural(checked, "database"), rest)
}

// findFields opens the first data file of a version that is not empty.
func (d *deep) findFields(ctx context.Context, src source.Source, db string, newest newestVersion) error {
	i := slices.IndexFunc(newest.files, func(f source.File) bool { return f.Size > 0 && !load.IsLogIndex(f.Name) })
	if i < 0 {
		return nil
	}
	c := d.c.ForDB(db)
	at := datafile.InSource(ctx, src, db, newest.name, newest.files[i], newest.files)
	if kind, err := at.Sniff(); err != nil || kind != datafile.Avro && kind != datafile.Parquet {
		return err
	}
	f, err := datafile.Open(at, datafile.Options{Fields: load.Fields{Key: c.Key, Value: c.Value}, PartitionColumns: c.PartitionColumns})
	if err != nil {
		return load.ExplainKey(err, db)
	}
	return f.Close()
}
