package source

import (
	"encoding/hex"
	"regexp"
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

// AddHidden adds a hidden entry. Of a directory, only the name is kept.
func (c *Contents) AddHidden(f File, dir bool) {
	if dir {
		f = File{Name: f.Name}
		c.addTableEntry(f.Name + "/")
	}
	c.Hidden = append(c.Hidden, Marker{File: f, Dir: dir})
}

// Keys collects the Contents of a version in a source without directories.
type Keys struct {
	c                      Contents
	mapFiles, dirs, hidden map[string]bool
}

// Add adds a file by its name relative to the version's directory. Files in hidden directories are not added.
func (k *Keys) Add(f File) {
	if k.dirs == nil {
		k.mapFiles, k.dirs, k.hidden = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	partition, rest := partitionPath(f.Name)
	dir, below, nested := strings.Cut(rest, "/")
	switch {
	case Hidden(dir) && !nested:
		k.c.AddHidden(f, false)
	case Hidden(dir):
		if partition != "" { // the source lists those of the version's directory itself
			k.hidden[partition+dir] = true
		}
	case !nested:
		k.c.Files = append(k.c.Files, f)
	case below == "data" && !IsPartition(dir):
		k.c.Files = append(k.c.Files, f)
		k.mapFiles[partition+dir] = true
	default:
		k.dirs[partition+dir] = true
		k.c.addTableEntry(f.Name)
	}
}

// Contents returns what was added, in no order.
func (k *Keys) Contents() Contents {
	for name := range k.dirs {
		if !k.mapFiles[name] {
			k.c.Dirs = append(k.c.Dirs, name)
		}
	}
	for name := range k.hidden {
		k.c.AddHidden(File{Name: name}, true)
	}
	return k.c
}

// A Column is a column of a partitioned table, as the name of a directory has it.
type Column struct {
	Name, Value string
	Null        bool
}

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
