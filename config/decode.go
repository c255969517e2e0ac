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

// decoder walks the tree of a parsed file and a struct together. It sets the valid fields, checks them (rules.go, validate.go), and
// collects all problems.
type decoder struct {
	file     string
	lines    map[string]int
	flags    map[string]string // key → the flag or variable that set it
	problems []*Problem
	warnings []*Warning
	reported map[string]bool   // the keys that could not be decoded, whose values are not checked
	files    map[string]string // see Config.Files
	dbs      any               // the [db.<name>] tables; nil if there are none
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
	if flag, ok := d.flags[key]; ok {
		return &Problem{File: flag, Reason: reason}
	}
	return &Problem{File: d.file, Line: d.lines[key], Key: key, Reason: reason}
}

// lower returns a table, and those in it, with keys in lower case: keys ignore case, for older files. Names of databases, and the keys in a
// table of values, do not.
func (d *decoder) lower(path string, in map[string]any) map[string]any {
	out, as := make(map[string]any, len(in)), make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(in)) {
		known := spelled(path, name)
		key := join(path, known)
		if as[known] != "" {
			d.problem(key, "is here twice: as %s and as %s", as[known], name)
			continue
		}
		as[known] = name
		if known != name {
			d.warn(key, "is written in lower case, not %s", name)
		}
		out[known] = in[name]
		if sub, ok := in[name].(map[string]any); ok {
			out[known] = d.lower(key, sub)
		}
	}
	return out
}

// spelled returns a key of the table at path as it is spelled in the struct.
func spelled(path, key string) string {
	if path == "db" || lastPart(path) == "required_keys" {
		return key
	}
	return strings.ToLower(key)
}

// table sets the fields of a struct from a table.
func (d *decoder) table(path string, in map[string]any, out reflect.Value) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		key := join(path, name)
		if reason, ok := retired[key]; ok {
			d.warn(key, "%s", reason)
		} else if f, ok := lookUp(out, name); ok {
			d.value(key, in[name], f.value)
		} else if !d.takeFile(path, name, in[name], out) {
			d.unknown(key)
		}
	}
}

// unknown reports an unknown key. It looks for a similar key, which is slow, only while problems are
// still reported.
func (d *decoder) unknown(key string) {
	const enough = 20 * maxReported
	if len(d.problems) > enough {
		d.problem(key, "unknown key")
		return
	}
	d.problem(key, "unknown key; the nearest known key is %s", nearestKey(key))
}

// lookUp returns the field of a struct for a key.
func lookUp(out reflect.Value, name string) (field, bool) {
	for f, v := range out.Fields() {
		if tag := f.Tag.Get("toml"); tag == name && tag != "-" {
			return field{tag, f.Tag, v}, true
		}
	}
	return field{}, false
}

// value sets one field.
func (d *decoder) value(key string, in any, out reflect.Value) {
	if t, ok := in.(text); ok {
		in = t.as(out.Addr().Interface())
	}
	switch out := out.Addr().Interface().(type) {
	case *map[string]DB:
		d.dbs = in // decoded by databases, which needs the rest of the file
	case *map[string]string:
		d.texts(key, in, out)
	case *string, *bool, *Require, *int, *float64, *[]string, *time.Duration, *Size, *Rate:
		switch want, wrong, err := convert(in, out); {
		case err != nil:
			d.problem(key, "%v", err)
		case want != "":
			d.mismatch(key, wrong, want)
		}
	default:
		if table, ok := d.asTable(key, in); ok {
			d.table(key, table, reflect.ValueOf(out).Elem())
		}
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
		return parsed(number(in), out, `a number of bytes or a size such as "256MiB"`, ParseSize)
	case *Rate:
		return parsed(number(in), out, `a number of MiB/s or a rate such as "50MiB/s"`, ParseRate)
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

// number returns an integer as a string, and other values as they are.
func number(in any) any {
	if n, ok := in.(int64); ok {
		return strconv.FormatInt(n, 10)
	}
	return in
}

// databases sets [db.<name>] for each name. Missing keys have the values for all databases.
func (d *decoder) databases(c *Config) {
	if d.dbs == nil {
		return
	}
	tables, ok := d.asTable("db", d.dbs)
	if !ok {
		return
	}
	c.DB = make(map[string]DB, len(tables))
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		key := join("db", name)
		table, ok := d.asTable(key, tables[name])
		if !ok {
			continue
		}
		db := c.allDBs()
		d.table(key, table, reflect.ValueOf(&db).Elem())
		c.DB[name] = db
	}
}

func (d *decoder) asTable(key string, in any) (map[string]any, bool) {
	table, ok := in.(map[string]any)
	if !ok {
		d.mismatch(key, in, "a table")
	}
	return table, ok
}

// texts replaces a map by the one of the file.
func (d *decoder) texts(key string, in any, out *map[string]string) {
	table, ok := d.asTable(key, in)
	if !ok {
		return
	}
	read := make(map[string]string, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		var value string
		d.value(join(key, name), table[name], reflect.ValueOf(&value).Elem())
		read[name] = value
	}
	if len(read) == 0 {
		read = nil
	}
	*out = read
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
