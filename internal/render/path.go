package render

import (
	"errors"
	"fmt"
	"slices"

	"sequins/internal/human"
)

// ErrNullKey is wrapped by errors for records whose key is null.
var ErrNullKey = errors.New("the key is null")

// ErrField is wrapped by errors for a configured field that does not exist or cannot be a key, and for a key field that
// is not configured.
var ErrField = errors.New("the fields that are set do not fit the records")

// FieldNames describes the fields that records have, for an error about one that they lack. Of many, it names the first.
func FieldNames(names []string) string { return "the fields are " + human.SomeUpTo(names, 20) }

// Paths selects the fields of a record that are served.
type Paths struct {
	Key   string // field used as the key
	Value string // field used as the value; "" is the whole record, as JSON
	// NoKey reads records without looking for their keys, which are then empty. Loads do not use it.
	NoKey bool `json:",omitempty"`
}

// Find looks up the paths in the schema of a file; the name of the key is nil with NoKey. fields describes the available fields, for errors, which wrap
// ErrField.
func (p Paths) Find(root Name, fields func() string) (key, value Found, err error) {
	switch {
	case p.NoKey:
	case p.Key == "":
		return key, value, fmt.Errorf("%w: key is not set; %s", ErrField, fields())
	default:
		if key, err = lookup(root, p.Key); err != nil {
			return key, value, fmt.Errorf("%w: key: %w; %s", ErrField, err, fields())
		}
	}
	if p.Value == "" {
		return key, Found{Name: root}, nil
	}
	if value, err = lookup(root, p.Value); err != nil {
		return key, value, fmt.Errorf("%w: value: %w; %s", ErrField, err, fields())
	}
	return key, value, nil
}

// Found is the result of a path, and the names on the path; none for the whole record.
type Found struct {
	Name Name
	Path []string
}

// Name is a schema element in which a path is looked up.
type Name interface {
	// Named returns the fields of a name: more than one in a file that has several.
	Named(name string) []Name
}

// lookup finds the field that a path names, in which dots stand between a record's name and its field's,
// and returns the names on the way. A field's own name can have dots too. It is an error if several fields
// can be meant: which of them is served would depend on the order in which they are looked up.
func lookup(in Name, path string) (Found, error) {
	all := find(nil, in, nil, path)
	switch {
	case len(all) == 0:
		return Found{}, fmt.Errorf("there is no field %q", path)
	case len(all) == 1:
		return all[0], nil
	case slices.Equal(all[0].Path, all[1].Path):
		return Found{}, fmt.Errorf("the file has two columns named %s", path)
	}
	return Found{}, fmt.Errorf("the file has two columns that can be meant by %s: %q and %q", path, all[0].Path, all[1].Path)
}

// find appends the fields that path names in a Name, which way leads to, until there are two.
func find(all []Found, in Name, way []string, path string) []Found {
	for _, field := range in.Named(path) {
		all = append(all, Found{field, append(slices.Clone(way), path)})
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		for _, record := range in.Named(path[:i]) {
			if len(all) > 1 {
				return all
			}
			all = find(all, record, append(slices.Clone(way), path[:i]), path[i+1:])
		}
	}
	return all
}
