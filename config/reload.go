package config

import "reflect"

// A Change is a key whose value differs between two configurations.
type Change struct {
	Key string
	// Reloadable reports whether a running node can apply the new value.
	Reloadable bool
}

// Changes returns the keys that differ between two configurations, in the order of the struct. Changes
// of databases' own keys are reported as one change of db, which is reloadable.
func Changes(from, to Config) []Change {
	return changes("", reflect.ValueOf(from), reflect.ValueOf(to))
}

func changes(path string, from, to reflect.Value) []Change {
	var found []Change
	for i := range from.NumField() {
		field, a, b := from.Type().Field(i), from.Field(i), to.Field(i)
		key := join(path, field.Tag.Get("toml"))
		if a.Kind() == reflect.Struct {
			found = append(found, changes(key, a, b)...)
		} else if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			found = append(found, Change{key, field.Tag.Get("reload") == "yes"})
		}
	}
	return found
}

// Reloaded returns the running configuration with all reloadable keys set to the values of fresh.
// SIGHUP applies it.
func Reloaded(running, fresh Config) Config {
	takeOver(reflect.ValueOf(&running).Elem(), reflect.ValueOf(fresh))
	return running
}

func takeOver(running, fresh reflect.Value) {
	for i := range running.NumField() {
		if running.Field(i).Kind() == reflect.Struct {
			takeOver(running.Field(i), fresh.Field(i))
		} else if running.Type().Field(i).Tag.Get("reload") == "yes" {
			running.Field(i).Set(fresh.Field(i))
		}
	}
}
