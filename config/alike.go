package config

import (
	"crypto/sha256"
	"fmt"
	"reflect"
)

// Alike returns the values of the keys that all nodes of a cluster should have alike, as they are written in a file. Of [db.<name>], it
// has the keys whose values differ from those for all databases.
func (c *Config) Alike() map[string]string {
	all := alikeOf(reflect.ValueOf(*c))
	standard := alikeOf(reflect.ValueOf(c.allDBs()))
	for name, db := range c.DB {
		for key, value := range alikeOf(reflect.ValueOf(db)) {
			if value != standard[key] {
				all[join("db", name)+"."+key] = value
			}
		}
	}
	return all
}

// alikeOf returns the values of the keys with the tag alike.
func alikeOf(table reflect.Value) map[string]string {
	all := make(map[string]string)
	for f := range fieldsOf("", table) {
		if f.tag.Get("alike") == "yes" {
			all[f.key] = inFile(f.value)
		}
	}
	return all
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
