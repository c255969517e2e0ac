package config

import (
	"bytes"
	"regexp"
	"strconv"

	"github.com/pelletier/go-toml/v2/unstable"
)

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// join appends a part to a dotted key, quoted if TOML requires it.
func join(path, part string) string {
	if !bareKey.MatchString(part) {
		part = strconv.Quote(part)
	}
	if path == "" {
		return part
	}
	return path + "." + part
}

// positions returns the line of the first occurrence of each key and table. The document must be valid
// TOML; otherwise lines are missing.
func positions(doc []byte) map[string]int {
	f := lineFinder{map[string]int{}, doc}
	var p unstable.Parser
	p.Reset(doc)
	table := ""
	for p.NextExpression() {
		switch node := p.Expression(); node.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = f.key("", node.Key())
		case unstable.KeyValue:
			f.keyValue(table, node)
		}
	}
	return f.lines
}

type lineFinder struct {
	lines map[string]int
	doc   []byte
}

func (f *lineFinder) keyValue(table string, node *unstable.Node) {
	key := f.key(table, node.Key())
	value := node.Value()
	if value.Kind != unstable.InlineTable {
		return
	}
	for it := value.Children(); it.Next(); {
		if it.Node().Kind == unstable.KeyValue {
			f.keyValue(key, it.Node())
		}
	}
}

// key records the lines of a dotted key and of the tables it names, and returns the key. Parts deeper
// than any known key are omitted, because their parent is already unknown.
func (f *lineFinder) key(table string, parts unstable.Iterator) string {
	const deepest = 5 // db.<name>.gate.required_keys.<key>
	path := table
	for depth := 0; depth < deepest && parts.Next(); depth++ {
		path = join(path, spelled(path, string(parts.Node().Data)))
		if _, seen := f.lines[path]; !seen {
			f.lines[path] = 1 + bytes.Count(f.doc[:parts.Node().Raw.Offset], []byte{'\n'})
		}
	}
	return path
}
