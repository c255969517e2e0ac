package config

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Alike returns the values of the keys that all nodes of a cluster should have alike, as they are written in a file. Of [db.<name>], it
// has the keys whose values differ from those for all databases.
func (c *Config) Alike() map[string]string {
	all := make(map[string]string)
	collectAlike("", reflect.ValueOf(*c), func(key string, v reflect.Value) { all[key] = inFile(v) })
	standard := make(map[string]string)
	collectAlike("", reflect.ValueOf(c.allDBs()), func(key string, v reflect.Value) { standard[key] = inFile(v) })
	for _, name := range slices.Sorted(maps.Keys(c.DB)) {
		collectAlike("", reflect.ValueOf(c.DB[name]), func(key string, v reflect.Value) {
			if value := inFile(v); value != standard[key] {
				all[join("db", name)+"."+key] = value
			}
		})
	}
	return all
}

// collectAlike calls found for each key with the tag alike.
func collectAlike(path string, table reflect.Value, found func(key string, v reflect.Value)) {
	for field, v := range table.Fields() {
		key := join(path, field.Tag.Get("toml"))
		switch {
		case v.Kind() == reflect.Struct:
			collectAlike(key, v, found)
		case field.Tag.Get("alike") == "yes":
			found(key, v)
		}
	}
}

// maxAlike limits a value, in bytes.
const maxAlike = 200

// inFile returns a value as it is written in a file. The end of a long one is replaced by a hash.
func inFile(v reflect.Value) string {
	s := Setting{Value: shown(v.Interface())}
	text := oneLine(s.TOML())
	if len(text) <= maxAlike {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%.*s… (SHA-256 %x)", maxAlike-40, text, sum[:8])
}
