package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"sequins/internal/nearest"
)

// decoder collects what a file, variables and flags give, by key, and sets the fields of a Config from that. It checks them (rules.go,
// validate.go), and collects all problems.
type decoder struct {
	file     string
	lines    map[string]int
	given    map[string]given
	dbs      []string // the names of the databases with keys
	problems []*Problem
	warnings []*Problem
	reported map[string]bool   // the keys that could not be decoded, whose values are not checked
	files    map[string]string // see Config.Files
}

type given struct {
	value any    // of TOML, or a text
	by    string // the flag or variable that set it; "" if the file did
}

func (d *decoder) problem(key, format string, args ...any) {
	if !d.reported[key] {
		d.problems = append(d.problems, d.at(key, fmt.Sprintf(format, args...)))
	}
}

func (d *decoder) warn(key, format string, args ...any) {
	d.warnings = append(d.warnings, d.at(key, fmt.Sprintf(format, args...)))
}

// at returns a problem at the place where a key was set.
func (d *decoder) at(key, reason string) *Problem {
	if flag := d.given[key].by; flag != "" {
		return &Problem{File: flag, Reason: reason}
	}
	return &Problem{File: d.file, Line: d.line(key), Key: key, Reason: reason}
}

// read collects the values of a table at a path, and of those in it. known is the path as in keys: that of the tables of databases is
// db.<name>. Keys ignore case, for older files. Names of databases, and the keys in a table of values, do not.
func (d *decoder) read(path, known string, in map[string]any) {
	as := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(in)) {
		part := spelled(path, name)
		key, of := join(path, part), join(known, part)
		if known == "db" {
			of = "db.<name>"
		}
		if as[part] != "" {
			d.problem(key, "is here twice: as %s and as %s", as[part], name)
			continue
		}
		as[part] = name
		if part != name {
			d.warn(key, "is written in lower case, not %s", name)
		}
		_, isKey := byName()[of]
		table, isTable := in[name].(map[string]any)
		switch {
		case isKey || otherForm(of) != "":
			d.given[key] = given{value: in[name]}
		case retired[of] != "":
			d.warn(key, "%s", retired[of])
		case !slices.Contains(keysAndTables(), of):
			d.problem(key, "unknown key%s", nearest.DidYouMean(nearestKey(key)))
		case !isTable:
			d.problem(key, "must be a table")
		default:
			if known == "db" {
				d.dbs = append(d.dbs, name)
			}
			d.read(key, of, table)
		}
	}
}

// spelled returns a key of the table at path as it is spelled in the struct.
func spelled(path, key string) string {
	if path == "db" || lastPart(path) == "required_keys" {
		return key
	}
	return strings.ToLower(key)
}

// set sets the keys of a table that are given, or whose files are.
func (d *decoder) set(path string, table reflect.Value) {
	for _, f := range fieldsOf(path, table) {
		if g, ok := d.given[f.key]; ok {
			d.value(f.key, g.value, f.value)
		}
		if f.is("secret") { // white space such as the newline at the end of a variable from a file
			f.value.SetString(strings.TrimSpace(f.value.String()))
		}
		fileKey, file := f.key+fileSuffix, ""
		if g, ok := d.given[fileKey]; ok {
			d.value(fileKey, g.value, reflect.ValueOf(&file).Elem())
		}
		switch {
		case file != "" && f.value.String() != "":
			d.problem(fileKey, "is set, and so is %s", lastPart(f.key))
		case file != "":
			d.files[f.key] = file
		}
	}
}

func (d *decoder) value(key string, in any, out reflect.Value) {
	if err := convert(in, out.Addr().Interface()); err != nil {
		d.problem(key, "%v", err)
	}
}

// convert sets a field from a value of TOML, or from a text. Its errors do not contain a text that may be secret.
func convert(in, out any) error {
	if t, ok := in.(text); ok {
		in = t.as(out)
	}
	switch out := out.(type) {
	case *string:
		return assign(in, out, "a string")
	case *bool:
		return assign(in, out, "true or false")
	case *float64:
		if n, ok := in.(int64); ok {
			in = float64(n)
		}
		return assign(in, out, "a number")
	case *int:
		if n, ok := in.(int64); ok {
			in = int(n)
		}
		return assign(in, out, "an integer")
	case *Require:
		if v, ok := in.(bool); ok {
			in = strconv.FormatBool(v)
		} else if in != string(RequireAuto) {
			return errors.New(`must be true, false or "auto"`)
		}
		*out = Require(in.(string))
	case *time.Duration:
		return parsed(in, out, func(s string) (time.Duration, error) {
			v, err := time.ParseDuration(s)
			if err != nil {
				err = fmt.Errorf(`%q is not a duration such as "10m" or "800us"`, s)
			}
			return v, err
		})
	case *Size:
		return parsed(in, out, ParseSize)
	case *Rate:
		return parsed(in, out, ParseRate)
	case *[]string:
		list, ok := in.([]any)
		read := make([]string, len(list))
		for i, v := range list {
			ok = ok && assign(v, &read[i], "") == nil
		}
		if !ok {
			return errors.New("must be an array of strings")
		}
		*out = read
	case *map[string]string:
		table, ok := in.(map[string]any)
		read := make(map[string]string, len(table))
		for name, v := range table {
			var value string
			ok = ok && assign(v, &value, "") == nil
			read[name] = value
		}
		if !ok {
			return errors.New("must be a table of strings")
		}
		*out = read
		if len(read) == 0 {
			*out = nil
		}
	}
	return nil
}

// assign sets a value of the same type.
func assign[T any](in any, out *T, want string) error {
	v, ok := in.(T)
	if !ok {
		return fmt.Errorf("must be %s", want)
	}
	*out = v
	return nil
}

// parsed sets a value that is written as a string, or as a number.
func parsed[T any](in any, out *T, parse func(string) (T, error)) error {
	v, err := parse(fmt.Sprint(in))
	if err == nil {
		*out = v
	}
	return err
}

// databases sets [db.<name>] for each name. Missing keys have the values for all databases.
func (d *decoder) databases(c *Config) {
	for _, name := range d.dbs {
		db := c.allDBs()
		d.set(join("db", name), reflect.ValueOf(&db).Elem())
		if c.DB == nil {
			c.DB = make(map[string]DB)
		}
		c.DB[name] = db
	}
}
