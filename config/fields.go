package config

import (
	"iter"
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
func fieldsOf(path string, table reflect.Value) iter.Seq[field] {
	return func(yield func(field) bool) {
		for f, v := range table.Fields() {
			name := f.Tag.Get("toml")
			key := join(path, name)
			switch {
			case name == "-":
			case v.Kind() != reflect.Struct:
				if !yield(field{key, f.Tag, v}) {
					return
				}
			default:
				for in := range fieldsOf(key, v) {
					if !yield(in) {
						return
					}
				}
			}
		}
	}
}

// pairs returns the keys of two tables of the same type, beside each other.
func pairs(path string, a, b reflect.Value) iter.Seq2[field, field] {
	return func(yield func(field, field) bool) {
		next, stop := iter.Pull(fieldsOf(path, b))
		defer stop()
		for f := range fieldsOf(path, a) {
			g, _ := next()
			if !yield(f, g) {
				return
			}
		}
	}
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

// equals reports whether two keys have the same value.
func (f field) equals(other field) bool {
	return reflect.DeepEqual(f.value.Interface(), other.value.Interface())
}
