package store

import (
	"strings"

	"sequins/internal/names"
)

// The id of a version is its name or, for a revision of a version, its name, "#" and a number of digits: see
// version.Revise. On the disk, in names of directories, manifests and notes, the mark of a revision is a '+', and a '+'
// of the name is escaped.
const (
	revisionMark = "#"
	diskMark     = "+"
	escapedPlus  = "%2B"
)

// validVersion reports whether s can be the id of a version.
func validVersion(s string) bool {
	name, number, revised := strings.Cut(s, revisionMark)
	return names.Valid(name) && len(diskName(s)) <= names.Max && (!revised || number != "" && strings.Trim(number, "0123456789") == "")
}

// diskName returns the form of a version's id on the disk.
func diskName(id string) string {
	return strings.ReplaceAll(strings.ReplaceAll(id, "+", escapedPlus), revisionMark, diskMark)
}

// versionID returns the id of a version from its form on the disk, and whether it is one.
func versionID(disk string) (id string, ok bool) {
	id = strings.ReplaceAll(strings.ReplaceAll(disk, diskMark, revisionMark), escapedPlus, "+")
	return id, validVersion(id) && diskName(id) == disk
}

// isVersionDir reports whether a directory of this name can be that of a version.
func isVersionDir(name string) bool {
	_, ok := versionID(name)
	return ok
}
