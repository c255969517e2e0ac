package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder collects what a file, variables and flags give, by key, and sets the fields of a Config from that. It checks them (rules.go,
// validate.go), and collects all problems.
type decoder struct {
	file     string
	lines    map[string]int
	given    map[string]given
	dbs      []string // the names of the databases with keys
	problems []*Problem
	warnings []*Warning
	reported map[string]bool   // the keys that could not be decoded, whose values are not checked
	files    map[string]string // see Config.Files
}

// given is the value of a key.
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
			d.unknown(key)
		case !isTable:
			d.mismatch(key, in[name], "a table")
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
		if f.isSecret() { // white space such as the newline at the end of a variable from a file
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

// unknown reports an unknown key. It looks for a similar key, which is slow, only while there are few problems.
func (d *decoder) unknown(key string) {
	const enough = 1000
	if len(d.problems) > enough {
		d.problem(key, "unknown key")
		return
	}
	d.problem(key, "unknown key; the nearest known key is %s", nearestKey(key))
}

// value sets one field.
func (d *decoder) value(key string, in any, out reflect.Value) {
	if t, ok := in.(text); ok {
		in = t.as(out.Addr().Interface())
	}
	switch want, wrong, err := convert(in, out.Addr().Interface()); {
	case err != nil:
		d.problem(key, "%v", err)
	case want != "":
		d.mismatch(key, wrong, want)
	}
}

// convert sets a value from one of TOML. If it is of another type, it returns what it must be, and the part that is not.
func convert(in, out any) (want string, wrong any, err error) {
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
			return `true, false or "auto"`, in, nil
		}
		*out = Require(in.(string))
	case *time.Duration:
		if in == int64(0) { // it needs no unit, as in Go's durations and in older files
			in = "0"
		}
		return parsed(in, out, `a duration such as "10m" or "800us"`, func(s string) (time.Duration, error) {
			v, err := time.ParseDuration(s)
			if err != nil {
				err = fmt.Errorf(`%q is not a duration such as "10m" or "800us"`, s)
			}
			return v, err
		})
	case *Size:
		return parsed(digits(in), out, `a number of bytes or a size such as "256MiB"`, ParseSize)
	case *Rate:
		return parsed(digits(in), out, `a number of MiB/s or a rate such as "50MiB/s"`, ParseRate)
	case *[]string:
		const want = `an array of strings`
		list, ok := in.([]any)
		if !ok {
			return want, in, nil
		}
		read := make([]string, len(list))
		for i, v := range list {
			if read[i], ok = v.(string); !ok {
				return want, v, nil
			}
		}
		*out = read
	case *map[string]string:
		table, ok := in.(map[string]any)
		if !ok {
			return "a table", in, nil
		}
		read := make(map[string]string, len(table))
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if read[name], ok = table[name].(string); !ok {
				return "a table of strings", table[name], nil
			}
		}
		*out = read
		if len(read) == 0 {
			*out = nil
		}
	}
	return "", nil, nil
}

// assign sets a value of the same type.
func assign[T any](in any, out *T, want string) (string, any, error) {
	v, ok := in.(T)
	if !ok {
		return want, in, nil
	}
	*out = v
	return "", nil, nil
}

// parsed sets a value from a string.
func parsed[T any](in any, out *T, want string, parse func(string) (T, error)) (string, any, error) {
	s, ok := in.(string)
	if !ok {
		return want, in, nil
	}
	v, err := parse(s)
	if err == nil {
		*out = v
	}
	return "", nil, err
}

// digits returns an integer as a string, and other values as they are.
func digits(in any) any {
	if n, ok := in.(int64); ok {
		return strconv.FormatInt(n, 10)
	}
	return in
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

func (d *decoder) mismatch(key string, in any, want string) {
	is := typeName(in)
	if isSecret(key) {
		is = "a value of another type" // which may be a password that needs quotes
	}
	d.problem(key, "must be %s, not %s", want, is)
}

// typeName describes the type of a value, with the value itself if it is short.
func typeName(in any) string {
	switch in := in.(type) {
	case string, text:
		return "a string"
	case bool:
		return fmt.Sprintf("the boolean %t", in)
	case int64:
		return fmt.Sprintf("the integer %d", in)
	case float64:
		return fmt.Sprintf("the float %v", in)
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}
