package render

import (
	"errors"
	"fmt"
)

// ErrNullKey is wrapped by errors about a record whose key is null.
var ErrNullKey = errors.New("the key is null")

// ErrField is wrapped by errors about a file that has no field of a name that is asked for, or one that
// cannot be a key; and by those about no field being asked for.
var ErrField = errors.New("the fields that are set do not fit the records")

// Paths say what of a record is served.
type Paths struct {
	Key   string // the field that is the key
	Value string // the field that is the value; "" is the whole record, as JSON
}

// Find looks up what the paths name in the schema of a file. fields says which fields there are, for errors,
// which wrap ErrField.
func (p Paths) Find(root Name, fields func() string) (key, value Found, err error) {
	if p.Key == "" {
		return key, value, fmt.Errorf("%w: key is not set; %s", ErrField, fields())
	}
	if key.Name, key.Path, err = lookup(root, p.Key); err != nil {
		return key, value, fmt.Errorf("%w: key: %w; %s", ErrField, err, fields())
	}
	if p.Value == "" {
		return key, Found{Name: root}, nil
	}
	if value.Name, value.Path, err = lookup(root, p.Value); err != nil {
		return key, value, fmt.Errorf("%w: value: %w; %s", ErrField, err, fields())
	}
	return key, value, nil
}

// Found is what a path names, and the names on the way there; none are the whole record.
type Found struct {
	Name Name
	Path []string
}

// A Name is something that a path is looked up in.
type Name interface {
	// Child finds a field; ok is false where there is none.
	Child(name string) (child Name, ok bool)
}

// lookup finds the field that a path names, in which dots stand between a record's name and its field's,
// and returns the names on the way. Where a field's own name has dots, that field wins.
func lookup(in Name, path string) (found Name, names []string, err error) {
	if found, ok := in.Child(path); ok {
		return found, []string{path}, nil
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if child, ok := in.Child(path[:i]); ok {
			if found, names, err := lookup(child, path[i+1:]); err == nil {
				return found, append([]string{path[:i]}, names...), nil
			}
		}
	}
	return nil, nil, fmt.Errorf("there is no field %q", path)
}
