package config

import (
	"reflect"
	"strings"
)

// A field is a key with its place in a Config or a DB.
type field struct {
	key   string // dotted
	tag   reflect.StructTag
	value reflect.Value
}

// fieldsOf returns the keys of a table and of the tables in it, in the order of the struct. The databases are one of them: db.
func fieldsOf(path string, table reflect.Value) (all []field) {
	for f, v := range table.Fields() {
		name := f.Tag.Get("toml")
		switch key := join(path, name); {
		case name == "-":
		case v.Kind() == reflect.Struct:
			all = append(all, fieldsOf(key, v)...)
		default:
			all = append(all, field{key, f.Tag, v})
		}
	}
	return all
}

// isSecret reports whether the value of the key is not shown.
func (f field) isSecret() bool { return f.tag.Get("secret") == "yes" }

// hasFile reports whether the value of the key can be in a file.
func (f field) hasFile() bool { return f.isSecret() || f.tag.Get("file") == "yes" }

// words returns the valid words of the key, nil if it can have other values.
func (f field) words() []string {
	if words := f.tag.Get("oneof"); words != "" {
		return strings.Fields(words)
	}
	return nil
}

// isReloadable reports whether SIGHUP changes the key.
func (f field) isReloadable() bool { return f.tag.Get("reload") == "yes" }

// isAlike reports whether all nodes should have the same value.
func (f field) isAlike() bool { return f.tag.Get("alike") == "yes" }

// equals reports whether two keys have the same value.
func (f field) equals(other field) bool {
	return reflect.DeepEqual(f.value.Interface(), other.value.Interface())
}
