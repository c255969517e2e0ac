package config

import "reflect"

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

// is reports whether a tag that is a mark is set: secret, reload, alike, required or zero.
func (f field) is(mark string) bool { return f.tag.Get(mark) == "yes" }

// hasFile reports whether the value of the key can be in a file.
func (f field) hasFile() bool { return f.is("secret") || f.is("file") }

// equals reports whether two keys have the same value.
func (f field) equals(other field) bool {
	return reflect.DeepEqual(f.value.Interface(), other.value.Interface())
}
