package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
)

// A table format such as Delta Lake keeps its own list of the files that are
// current, beside deleted, replaced and uncommitted ones. So a directory that
// belongs to a table is not read as plain files, whichever it is: that of the source,
// of a database, of a version, or one column=value in a version.

// tableFormats have, for each format, what is in the directory of every table
// of the format that has data: the path of an entry relative to that directory. A
// directory ends in a slash. Where a name alone could be that of a version, it
// is a file in the directory that counts.
var tableFormats = []struct {
	name  string
	entry *regexp.Regexp
}{
	{"Delta Lake", regexp.MustCompile(`^_delta_log/$`)},
	{"Hudi", regexp.MustCompile(`^\.hoodie/$`)},
	{"Spark's streaming sink", regexp.MustCompile(`^_spark_metadata/$`)},
	{"Iceberg", regexp.MustCompile(`^metadata/(version-hint\.text|[^/]+\.metadata\.json(\.gz)?)$`)},
	{"Paimon", regexp.MustCompile(`^snapshot/snapshot-\d+$`)},
	{"Hive ACID", regexp.MustCompile(`^` + hiveDir + `/(_orc_acid_version|bucket_\d{5}[^/]*|\d{6}_\d+[^/]*|[0-9a-f]{16}-[0-9a-f]{16}_\d+_data\.[^/]*)$`)},
}

// hiveDir matches the directories of Hive's transactions, whose ids have seven digits.
const hiveDir = `(base_\d{7}|(delete_)?delta_\d{7}_\d{7})(_\d{4})?(_v\d{7,})?`

// tableDirs matches the names of the directories that tableFormats look into.
var tableDirs = regexp.MustCompile(`^(metadata|snapshot|` + hiveDir + `)$`)

// tableOf returns the format of the table that an entry belongs to; "" if it belongs to none.
func tableOf(entry string) string {
	for _, f := range tableFormats {
		if f.entry.MatchString(entry) {
			return f.name
		}
	}
	return ""
}

// tableError is the error for a directory that belongs to a table, because of
// an entry of it, relative to the directory.
func tableError(dir, entry string) error {
	return fmt.Errorf("%s: %w: %s makes it a table of %s, which keeps its own list of the files that are current, and sequins does not read that; "+
		"export the records as plain files to the directory of a version, <source>/<database>/<version>, for example by Spark's df.write.parquet",
		dir, ErrLayout, entry, tableOf(entry))
}

// addTableEntry sets Table, to the first in the order of names, if an entry of the version, or of a directory of a
// partitioned table in it, shows that a table format owns that directory. A
// directory ends in a slash.
func (c *Contents) addTableEntry(name string) {
	if _, entry := partitionPath(name); (c.Table == "" || name < c.Table) && tableOf(entry) != "" {
		c.Table = name
	}
}

// maxHiveLooks limits the directories of Hive's transactions that findTable lists.
const maxHiveLooks = 3

// findTable returns an entry that makes a directory above the versions a table;
// "" if there is none. dirs are the directories in it.
func findTable(ctx context.Context, src Source, dir string, dirs []string) (entry string, err error) {
	looks := 0
	var candidates []string
	for _, name := range slices.Backward(dirs) {
		switch {
		case tableOf(name+"/") != "":
			return name + "/", nil
		case name == "metadata", name == "snapshot":
			candidates = append(candidates, name)
		case tableDirs.MatchString(name) && looks < maxHiveLooks:
			candidates = append(candidates, name)
			looks++
		}
	}
	for _, name := range candidates {
		in, err := src.ReadDir(ctx, path.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for _, file := range in.Files {
			if tableOf(name+"/"+file) != "" {
				return name + "/" + file, nil
			}
		}
	}
	return "", nil
}
