package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Flag is a key that the command line or the environment overrides.
type Flag struct {
	Name  string // as shown in problems: "--bind", "SEQUINS_BIND"
	Key   string // dotted: "debug.bind"
	Value string
	path  []string // its parts, for keys with dots in them; nil: those of Key
}

// override sets a flag in the tree. If the file has a value where the flag needs a table, decoding
// reports that.
func (d *decoder) override(tree map[string]any, flag Flag) {
	path := flag.path
	if path == nil {
		path = strings.Split(flag.Key, ".")
	}
	at := ""
	for depth, part := range path[:len(path)-1] {
		if depth != 1 || !strings.EqualFold(path[0], "db") { // names of databases are case-sensitive
			part = spelling(tree, part)
		}
		at = join(at, part)
		if tree[part] == nil {
			tree[part] = map[string]any{}
		}
		sub, ok := tree[part].(map[string]any)
		if !ok {
			return
		}
		tree = sub
	}
	key := path[len(path)-1]
	delete(tree, spelling(tree, key))
	if other := otherForm(flag.Key); other != "" && d.flags[other] == "" { // the file may give the value in the other way
		delete(tree, spelling(tree, lastPart(other)))
	}
	tree[key] = text(flag.Value)
	d.flags[join(at, key)] = flag.Name
}

// otherForm returns the key that gives the value of a key in the other way, here or in a file; "" if there is one way only.
func otherForm(key string) string {
	if name, isFile := strings.CutSuffix(key, fileSuffix); isFile && byName()[name].File {
		return name
	}
	if byName()[key].File {
		return key + fileSuffix
	}
	return ""
}

// spelling returns the spelling of a key in a table, ignoring case; key itself if it is absent.
func spelling(table map[string]any, key string) string {
	if _, ok := table[key]; ok {
		return key
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if strings.EqualFold(name, key) {
			return name
		}
	}
	return key
}

// folded returns a dotted key in lower case, except the name of a database: keys ignore case, and names of databases do not.
// Keys that fold to the same are the same.
func folded(key string) string {
	const db = "db."
	if len(key) < len(db) || !strings.EqualFold(key[:len(db)], db) {
		return strings.ToLower(key)
	}
	rest := key[len(db):]
	name, err := strconv.QuotedPrefix(rest)
	if err != nil {
		name, _, _ = strings.Cut(rest, ".")
	}
	return db + name + strings.ToLower(rest[len(name):])
}
