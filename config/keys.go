package config

import (
	"reflect"
	"slices"
	"strings"

	"sequins/internal/nearest"
)

// A Key is a key of the configuration file.
type Key struct {
	// Name is dotted. Keys of a database are named db.<name>.content_type and so on.
	Name string
	// Reloadable reports whether SIGHUP changes the key.
	Reloadable bool

	secret bool
}

// Keys returns every key in the order of the struct, without retired ones.
func Keys() []Key {
	return keysOf("", reflect.TypeFor[Config]())
}

func keysOf(path string, t reflect.Type) []Key {
	var keys []Key
	for f := range t.Fields() {
		name := f.Tag.Get("toml")
		if path != "" {
			name = path + "." + name
		}
		switch f.Type.Kind() {
		case reflect.Struct:
			keys = append(keys, keysOf(name, f.Type)...)
		case reflect.Map:
			if f.Type.Elem().Kind() == reflect.String {
				keys = append(keys, Key{name, f.Tag.Get("reload") == "yes", f.Tag.Get("secret") == "yes"})
				continue
			}
			keys = append(keys, keysOf(name+".<name>", f.Type.Elem())...)
		default:
			keys = append(keys, Key{name, f.Tag.Get("reload") == "yes", f.Tag.Get("secret") == "yes"})
		}
	}
	return keys
}

// isSecret reports whether the value of a key is secret.
func isSecret(key string) bool {
	return slices.ContainsFunc(Keys(), func(k Key) bool { return k.secret && strings.EqualFold(k.Name, key) })
}

// nearestKey returns the known key or table with the smallest edit distance to an unknown one. A key of
// the same name in another table has distance 1 at most, because misplaced keys are common.
func nearestKey(key string) string {
	const longest = 80 // longer than any known key; the distance takes quadratic time
	key = key[:min(len(key), longest)]
	if parts := strings.SplitN(key, ".", 3); parts[0] == "db" && len(parts) == 3 {
		key = "db.<name>." + parts[2]
	}
	best, bestDistance := "", 1<<30
	for _, k := range keysAndTables() {
		distance := nearest.Distance(key, k)
		if lastPart(k) == lastPart(key) {
			distance = min(distance, 1)
		}
		if distance < bestDistance {
			best, bestDistance = k, distance
		}
	}
	return best
}

func keysAndTables() []string {
	var names []string
	for _, key := range Keys() {
		if table, _, ok := strings.Cut(key.Name, "."); ok && !slices.Contains(names, table) {
			names = append(names, table)
		}
		names = append(names, key.Name)
	}
	return names
}

func lastPart(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
