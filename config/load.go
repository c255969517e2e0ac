package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// SearchPath is where a configuration is looked for when no file is named.
var SearchPath = []string{"sequins.conf", "/etc/sequins.conf"}

// maxFile limits the size of a configuration file, in bytes: parsing takes a time that grows with the
// square of the number of keys.
const maxFile = 256 << 10

// A Flag is a key that the command line sets in place of the file.
type Flag struct {
	Name  string // as problems name it: "--bind"
	Key   string // dotted: "debug.bind"
	Value string
}

// Find returns the first file of the search path that exists, or "" when there is none. A file that is
// there and cannot be read is for Load to complain about.
func Find(searchPath []string) string {
	for _, path := range searchPath {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	return ""
}

// Load reads a configuration file over the defaults, and flags over the file. An empty path stands for
// an empty file. The error is a Problems with everything that is wrong, or says why the file cannot be
// read; the warnings are valid either way.
func Load(path string, flags ...Flag) (Config, []*Warning, error) {
	var doc []byte
	if path != "" {
		var err error
		if doc, err = read(path); err != nil {
			return Default(), nil, err
		}
	}
	return parse(path, doc, flags)
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
	doc, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if len(doc) > maxFile {
		return nil, fmt.Errorf("reading the configuration: %s is larger than %d bytes", path, maxFile)
	}
	return doc, nil
}

func parse(path string, doc []byte, flags []Flag) (Config, []*Warning, error) {
	c := Default()
	tree := map[string]any{}
	if err := toml.Unmarshal(doc, &tree); err != nil {
		return c, nil, syntaxProblem(path, err)
	}
	d := decoder{file: path, lines: positions(doc), flags: map[string]string{}}
	for _, flag := range flags {
		override(tree, flag)
		d.flags[flag.Key] = flag.Name
	}
	d.table("", tree, reflect.ValueOf(&c).Elem())
	d.databases(&c)
	d.check(&c)
	sortProblems(d.problems)
	sortProblems(d.warnings)
	if len(d.problems) > 0 {
		return c, d.warnings, Problems(d.problems)
	}
	return c, d.warnings, nil
}

// syntaxProblem is what go-toml could not parse; it stops at the first.
func syntaxProblem(path string, err error) error {
	p := &Problem{File: path, Reason: strings.TrimPrefix(err.Error(), "toml: ")}
	var syntax *toml.DecodeError
	if errors.As(err, &syntax) {
		p.Line, _ = syntax.Position()
	}
	return Problems{p}
}

// override puts a flag into the tree in place of what the file says. Where the file has something else
// than the table that the key is in, that is reported soon enough.
func override(tree map[string]any, flag Flag) {
	table, key, nested := strings.Cut(flag.Key, ".")
	if !nested {
		put(tree, flag.Key, flag.Value)
		return
	}
	table = spelling(tree, table)
	if tree[table] == nil {
		tree[table] = map[string]any{}
	}
	if sub, ok := tree[table].(map[string]any); ok {
		put(sub, key, flag.Value)
	}
}

// put sets a key in place of the same key in another case.
func put(table map[string]any, key, value string) {
	delete(table, spelling(table, key))
	table[key] = value
}

// spelling returns how a table has a key, whose case does not matter; key itself if it is not there.
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
