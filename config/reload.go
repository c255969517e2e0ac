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
	var found []Change
	for a, b := range pairs("", reflect.ValueOf(from), reflect.ValueOf(to)) {
		if !a.equals(b) {
			found = append(found, Change{a.key, a.isReloadable()})
		}
	}
	return found
}

// Reloaded returns the running configuration with all reloadable keys set to the values of fresh.
// SIGHUP applies it.
func Reloaded(running, fresh Config) Config {
	for now, next := range pairs("", reflect.ValueOf(&running).Elem(), reflect.ValueOf(fresh)) {
		if now.isReloadable() {
			now.value.Set(next.value)
		}
	}
	return running
}
