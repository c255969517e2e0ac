package config

import (
	"slices"
	"strings"
)

// A Flag is a key that the command line or the environment overrides.
type Flag struct {
	Name  string // as shown in problems: "--bind", "SEQUINS_BIND"
	Key   string // dotted: "debug.bind"
	Value string
	db    string // the database, if it is a key of one
}

// override sets what a flag gives. The file may give the value in the other way.
func (d *decoder) override(flag Flag) {
	if other := otherForm(flag.Key); d.given[other].by == "" {
		delete(d.given, other)
	}
	d.given[flag.Key] = given{text(flag.Value), flag.Name}
	if flag.db != "" && !slices.Contains(d.dbs, flag.db) {
		d.dbs = append(d.dbs, flag.db)
	}
}

// otherForm returns the key that gives the value of a key in the other way, here or in a file; "" if there is one way only.
func otherForm(key string) string {
	if name, isFile := strings.CutSuffix(key, fileSuffix); isFile && byName()[name].hasFile() {
		return name
	}
	if byName()[key].hasFile() {
		return key + fileSuffix
	}
	return ""
}
