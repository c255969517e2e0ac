package source

import (
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Limits of the directories of a partitioned table that are part of a version.
const (
	// MaxPartitionDepth is the number of directories of the form column=value that can be nested.
	MaxPartitionDepth = 8
	// maxPartitionDirs bounds their number.
	maxPartitionDirs = 100_000
)

// IsPartition reports whether a directory is named like one of a partitioned table: day=2026-01-31. The data files in it
// are data files of the version.
func IsPartition(name string) bool { return !Hidden(name) && strings.IndexByte(name, '=') > 0 }

// partitionPath splits a name into the directories column=value that it begins with, ending in a slash, and the rest.
func partitionPath(name string) (dirs, rest string) {
	end := 0
	for range MaxPartitionDepth {
		dir, _, nested := strings.Cut(name[end:], "/")
		if !nested || !IsPartition(dir) {
			break
		}
		end += len(dir) + 1
	}
	return name[:end], name[end:]
}

// mapFileData is the name of the file in a MapFile that has its records.
const mapFileData = "data"

// Keys collects the Contents of a version, of names relative to its directory.
type Keys struct {
	c                      Contents
	mapFiles, dirs, hidden map[string]bool
	beside                 []string // files in dirs, without the data of MapFiles
}

// Add adds a file. A name with a slash at the end is a directory.
func (k *Keys) Add(f File) {
	if k.dirs == nil {
		k.mapFiles, k.dirs, k.hidden = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	partition, rest := partitionPath(f.Name)
	dir, below, nested := strings.Cut(rest, "/")
	switch {
	case rest == "": // a directory of a partitioned table
	case Hidden(dir) && !nested:
		k.c.Hidden = append(k.c.Hidden, Marker{File: f})
	case Hidden(dir):
		k.hidden[partition+dir] = true
	case !nested:
		k.c.Files = append(k.c.Files, f)
	case below == mapFileData && !IsPartition(dir):
		k.c.Files = append(k.c.Files, f)
		k.mapFiles[partition+dir] = true
	default:
		k.dirs[partition+dir] = true
		if below != "" {
			k.beside = append(k.beside, f.Name)
			k.c.addTableEntry(f.Name)
		}
	}
}

// Contents returns what was added.
func (k *Keys) Contents() Contents {
	c := k.c
	for name := range k.dirs {
		if !k.mapFiles[name] {
			c.Dirs = append(c.Dirs, name)
		}
	}
	for _, name := range k.beside {
		if k.mapFiles[path.Dir(name)] {
			c.Indexes = append(c.Indexes, name)
		}
	}
	for name := range k.hidden {
		c.Hidden = append(c.Hidden, Marker{File: File{Name: name}, Dir: true})
		c.addTableEntry(name + "/")
	}
	slices.SortFunc(c.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Hidden, func(a, b Marker) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(c.Dirs)
	return c
}

// A Column is a column of a partitioned table, as the name of a directory has it.
type Column struct {
	Name, Value string
	Null        bool
}

// nullPartition is the value of a null, of Hive and Spark.
const nullPartition = "__HIVE_DEFAULT_PARTITION__"

// Columns returns the columns of the directories of a file, by its name relative to the version's directory.
func Columns(name string) (columns []Column) {
	dirs, _ := partitionPath(name)
	for dir := range strings.SplitSeq(strings.TrimSuffix(dirs, "/"), "/") {
		column, value, ok := strings.Cut(dir, "=")
		if ok {
			columns = append(columns, Column{Name: unescape(column), Value: unescape(value), Null: value == nullPartition})
		}
	}
	return columns
}

// escape is a percent escape of Hive. A '%' without two hex digits stands for itself.
var escape = regexp.MustCompile(`%[0-9a-fA-F]{2}`)

func unescape(s string) string {
	return escape.ReplaceAllStringFunc(s, func(found string) string {
		b, _ := hex.DecodeString(found[1:])
		return string(b)
	})
}
