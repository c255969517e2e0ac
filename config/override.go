package config

import "strings"

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
	for _, part := range path[:len(path)-1] {
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
	if other := otherForm(flag.Key); other != "" && d.flags[other] == "" { // the file may give the value in the other way
		delete(tree, lastPart(other))
	}
	tree[key] = text(flag.Value)
	d.flags[join(at, key)] = flag.Name
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
