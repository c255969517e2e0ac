package render

import (
	"errors"
	"fmt"
)

// ErrNullKey is wrapped by errors for records whose key is null.
var ErrNullKey = errors.New("the key is null")

// ErrField is wrapped by errors for a configured field that does not exist or cannot be a key, and for a key field that
// is not configured.
var ErrField = errors.New("the fields that are set do not fit the records")

// Paths selects what is served of a record.
type Paths struct {
	Key   string // field used as the key
	Value string // field used as the value; "" is the whole record, as JSON
}

// Find looks up the paths in the schema of a file. fields describes the available fields, for errors, which wrap
// ErrField.
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

// Found is the result of a path, and the names on the path; none for the whole record.
type Found struct {
	Name Name
	Path []string
}

// Name is a schema element in which a path is looked up.
type Name interface {
	// Child returns a field; ok is false if there is none.
	Child(name string) (child Name, ok bool)
}

// lookup returns the field at a path, in which a dot separates a record's name from its field's, and the names on the
// path. A field whose own name contains dots takes precedence.
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
	return nil, nil, fmt.Errorf("no field %q", path)
}
