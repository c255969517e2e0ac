package config

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

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

// positions returns the line of the first occurrence of each key and table. The document must be valid TOML; otherwise lines are missing.
// Those of keys in inline tables are missing, too, see decoder.line, and those deeper than any known key.
func positions(doc []byte) map[string]int {
	const deepest = 5 // db.<name>.gate.required_keys.<key>
	lines, table := make(map[string]int), ""
	var p unstable.Parser
	p.Reset(doc)
	for p.NextExpression() {
		node, path := p.Expression(), ""
		switch node.Kind {
		case unstable.KeyValue:
			path = table
		case unstable.Table, unstable.ArrayTable:
		default:
			continue
		}
		parts := node.Key()
		for depth := 0; depth < deepest && parts.Next(); depth++ {
			path = join(path, spelled(path, string(parts.Node().Data)))
			if _, seen := lines[path]; !seen {
				lines[path] = 1 + bytes.Count(doc[:parts.Node().Raw.Offset], []byte{'\n'})
			}
		}
		if node.Kind != unstable.KeyValue {
			table = path
		}
	}
	return lines
}

// line returns the line of a key, or of the table that it is in: an inline table has one line.
func (d *decoder) line(key string) int {
	for key != "" && d.lines[key] == 0 {
		key = key[:max(0, strings.LastIndexByte(key, '.'))]
	}
	return d.lines[key]
}
