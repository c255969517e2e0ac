package config

import "reflect"

// A Change is a key that two configurations differ in.
type Change struct {
	Key string
	// Reloadable says whether a running node can take the new value over.
	Reloadable bool
}

// Changes lists the keys that differ from one configuration to another, in the order of the struct. A
// change of a database's own keys is one change of db, which is reloadable.
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

// Reloaded returns the running configuration with every reloadable key as the new one has it: what a
// node runs with after SIGHUP.
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
