package config

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"sequins/internal/fsys"
	"sequins/internal/term"
)

// A Setting is the effective value of a key.
type Setting struct {
	Key string `json:"key"` // dotted; db.words.partitioner for a database
	// Value is a string, bool, int, float64, []string or map[string]string. Durations, sizes and rates are strings
	// with units.
	Value any `json:"value"` // *** for a secret
	// From is where the value was set: a file with the line, a variable of the environment, or a flag; "default" if it was
	// not set.
	From string `json:"from"`
}

// hidden is the value of secrets that are set.
const hidden = "***"

// Settings loads a configuration, see Load, and returns the values of all keys, in the order of the struct, and those that [db.<name>] sets.
func Settings(path string, flags ...Flag) ([]Setting, []*Problem, error) {
	c, d, err := loadFile(path, withPipes{fsys.OS}, flags)
	if err != nil {
		return nil, d.warnings, err
	}
	all := d.settings("", reflect.ValueOf(c))
	for _, name := range slices.Sorted(maps.Keys(c.DB)) {
		for _, s := range d.settings(join("db", name), reflect.ValueOf(c.DB[name])) {
			if s.From != fromDefault {
				all = append(all, s)
			}
		}
	}
	return all, d.warnings, nil
}

const fromDefault = "default"

func (d *decoder) settings(path string, table reflect.Value) []Setting {
	var all []Setting
	for _, f := range fieldsOf(path, table) {
		if _, dbs := f.value.Interface().(map[string]DB); dbs {
			continue
		}
		s := Setting{Key: f.key, Value: shown(f.value.Interface())}
		switch {
		case d.files[f.key] != "":
			s.Key, s.Value = f.key+fileSuffix, d.files[f.key]
		case f.is("secret") && s.Value != "":
			s.Value = hidden
		}
		s.From = d.from(s.Key)
		all = append(all, s)
	}
	return all
}

// from describes where a key was set.
func (d *decoder) from(key string) string {
	switch g, found := d.given[key]; {
	case !found:
		return fromDefault
	case g.by != "":
		return g.by
	}
	return fmt.Sprintf("%s:%d", d.file, d.line(key))
}

// shown returns a value as it is written in a file.
func shown(v any) any {
	switch v := v.(type) {
	case fmt.Stringer: // a duration, a size or a rate
		return v.String()
	case Require:
		if v == RequireAuto {
			return string(v)
		}
		return v == RequireTrue
	case []string:
		return slices.Concat([]string{}, v) // not null in JSON
	}
	return v
}

// TOML returns the value as it is written in a file.
func (s *Setting) TOML() string {
	var doc strings.Builder
	if err := toml.NewEncoder(&doc).SetTablesInline(true).Encode(map[string]any{"x": s.Value}); err != nil {
		panic(err) // of the types of Value
	}
	return strings.TrimSpace(strings.TrimPrefix(doc.String(), "x = "))
}

// Alike returns the values of the keys that all nodes of a cluster should have alike, as they are written in a file. Of [db.<name>], it
// has the keys whose values differ from those for all databases.
func (c *Config) Alike() map[string]string {
	all := make(map[string]string)
	for _, f := range fieldsOf("", reflect.ValueOf(*c)) {
		if f.is("alike") {
			all[f.key] = inFile(f.value)
		}
	}
	standard := fieldsOf("", reflect.ValueOf(c.allDBs()))
	for name, db := range c.DB {
		for i, f := range fieldsOf(join("db", name), reflect.ValueOf(db)) {
			if f.is("alike") && !f.equals(standard[i]) {
				all[f.key] = inFile(f.value)
			}
		}
	}
	return all
}

// maxAlike limits a value, in bytes.
const maxAlike = 200

// inFile returns a value as it is written in a file. The end of a long one is replaced by a hash.
func inFile(v reflect.Value) string {
	s := Setting{Value: shown(v.Interface())}
	text := term.Clean(s.TOML())
	if len(text) <= maxAlike {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%.*s… (SHA-256 %x)", maxAlike-40, text, sum[:8])
}

// Reloaded returns the running configuration with the reloadable keys of fresh, as SIGHUP applies it, the keys that this changes, and those
// that differ and need a restart, in the order of the struct. The keys of databases are one key, db.
func Reloaded(running, fresh Config) (next Config, changed, left []string) {
	changed, left = []string{}, []string{} // not null in JSON
	wanted := fieldsOf("", reflect.ValueOf(fresh))
	for i, f := range fieldsOf("", reflect.ValueOf(&running).Elem()) {
		switch {
		case f.equals(wanted[i]):
		case f.is("reload"):
			f.value.Set(wanted[i].value)
			changed = append(changed, f.key)
		default:
			left = append(left, f.key)
		}
	}
	return running, changed, left
}
