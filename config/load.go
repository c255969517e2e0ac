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

// SearchPath lists the files to try if no configuration file is named.
var SearchPath = []string{"sequins.conf", "/etc/sequins.conf"}

// maxFile limits the size of a configuration file, in bytes. Parsing takes time quadratic in the number
// of keys.
const maxFile = 256 << 10

// A Flag is a key that the command line overrides.
type Flag struct {
	Name  string // as shown in problems: "--bind"
	Key   string // dotted: "debug.bind"
	Value string
}

// Find returns the first file of the search path that exists, or "" if there is none. An unreadable
// file counts as existing; Load reports it.
func Find(searchPath []string) string {
	for _, path := range searchPath {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	return ""
}

// Load reads a configuration file. The file overrides the defaults, and flags override the file. An
// empty path means an empty file. The error is a Problems, or the reason why the file cannot be read;
// the warnings are valid in both cases.
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

// syntaxProblem returns the first syntax error of go-toml as a Problems.
func syntaxProblem(path string, err error) error {
	p := &Problem{File: path, Reason: strings.TrimPrefix(err.Error(), "toml: ")}
	var syntax *toml.DecodeError
	if errors.As(err, &syntax) {
		p.Line, _ = syntax.Position()
	}
	return Problems{p}
}

// override sets a flag in the tree. If the file has a value where the flag needs a table, decoding
// reports that.
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

// put sets a key, replacing any spelling of it in another case.
func put(table map[string]any, key, value string) {
	delete(table, spelling(table, key))
	table[key] = value
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
