package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"sequins/internal/fsys"
	"sequins/internal/nearest"
)

// SearchPath lists the files to try if no configuration file is named.
var SearchPath = []string{"sequins.conf", "/etc/sequins.conf"}

// maxFile limits the size of a configuration file, in bytes. Parsing takes time quadratic in the number
// of keys.
const maxFile = 256 << 10

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

// Load reads a configuration file, which may be a pipe. The file overrides the defaults, variables of the environment override
// the file, and flags override both. An empty path means an empty file. The error joins a Problem
// for each line, or is the reason why the file cannot be read; the warnings are valid in both cases.
func Load(path string, flags ...Flag) (Config, []*Problem, error) {
	c, d, err := loadFile(path, withPipes{fsys.OS}, flags)
	return c, d.warnings, err
}

// Reload reads a configuration file again, as Load does. It refuses what is not a regular file: a pipe would be empty, or block.
func Reload(path string, flags ...Flag) (Config, []*Problem, error) {
	c, d, err := loadFile(path, fsys.OS, flags)
	return c, d.warnings, err
}

// loadFile also returns the decoder, which knows where keys were set.
func loadFile(path string, disk fsys.FS, flags []Flag) (Config, *decoder, error) {
	var doc []byte
	if path != "" {
		var err error
		if doc, err = fsys.ReadFile(disk, path, maxFile); err != nil {
			return Default(), new(decoder), fmt.Errorf("reading the configuration: %w", err)
		}
	}
	return parse(path, doc, os.Environ(), flags)
}

// withPipes are the files of the system, with pipes and devices, which may take for ever.
type withPipes struct{ fsys.FS }

func (withPipes) Open(name string) (fsys.File, error) { return os.Open(name) }

func parse(path string, doc []byte, environ []string, flags []Flag) (Config, *decoder, error) {
	c := Default()
	d := &decoder{file: path, given: map[string]given{}, files: map[string]string{}}
	tree := map[string]any{}
	doc = bytes.TrimPrefix(doc, []byte("\ufeff")) // as some editors write it
	if err := toml.Unmarshal(doc, &tree); err != nil {
		p := &Problem{File: path, Reason: strings.TrimPrefix(err.Error(), "toml: ")}
		if syntax, ok := errors.AsType[*toml.DecodeError](err); ok {
			p.Line, _ = syntax.Position()
		}
		return c, d, p
	}
	d.lines = positions(doc)
	variables, unknown := flagsOf(environ)
	var known []string
	for _, k := range keys() {
		known = append(known, Variable(k.key))
	}
	for _, name := range unknown { // no problem: the program that sets it may mean another one
		d.warnings = append(d.warnings, &Problem{File: name, Reason: "sets no key" + nearest.DidYouMean(nearest.Of(name, known))})
	}
	d.read("", "", tree)
	for _, flag := range append(variables, flags...) {
		d.override(flag)
	}
	d.set("", reflect.ValueOf(&c).Elem())
	if len(d.files) > 0 {
		c.Files = d.files
	}
	scheme, _, _ := strings.Cut(c.Source, "://")
	if d.from("settle") == fromDefault && slices.Contains(slices.Concat(bucketSchemes, azureSchemes), scheme) {
		c.Settle = objectStoreSettle
	}
	d.databases(&c)
	d.check(&c)
	sortProblems(d.warnings)
	return c, d, joined(d.problems)
}
