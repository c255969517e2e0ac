package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sequins/internal/fsys"
)

// fileSuffix ends the keys that name a file with the value of another key.
const fileSuffix = "_file"

// maxSecret limits the file of a secret, in bytes.
const maxSecret = 1 << 20

// isGiven reports whether a secret is set, here or in a file.
func (c *Config) isGiven(key, value string) bool { return value != "" || c.Files[key] != "" }

// asGiven returns the key that gives a value, itself or the one of its file.
func (c *Config) asGiven(key string) string {
	if c.Files[key] != "" {
		return key + fileSuffix
	}
	return key
}

// ReadSecrets reads the files of the keys that are given as <key>_file, and sets these keys. With names of tables, only those of these
// tables are read. The error joins one for each file.
func (c *Config) ReadSecrets(tables ...string) error {
	var errs []error
	for _, f := range fieldsOf("", reflect.ValueOf(c).Elem()) {
		table, _, _ := strings.Cut(f.key, ".")
		file := c.Files[f.key]
		if file == "" || len(tables) > 0 && !slices.Contains(tables, table) {
			continue
		}
		value, err := f.read(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s%s: %w", f.key, fileSuffix, err))
			continue
		}
		f.value.SetString(value)
	}
	return errors.Join(errs...)
}

// read reads the value of the key from a file, and checks it. It does not block on a pipe.
func (f field) read(file string) (string, error) {
	doc, err := fsys.ReadFile(fsys.OS, file, maxSecret)
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(doc))
	if value == "" && f.is("secret") {
		return "", fmt.Errorf("%s is empty", file)
	}
	if err := f.checkText(value); err != nil {
		return "", fmt.Errorf("what is in %s %w", file, err)
	}
	return value, nil
}
