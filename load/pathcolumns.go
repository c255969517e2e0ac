package load

import (
	"fmt"
	"slices"
	"strconv"

	"sequins/internal/render"
	"sequins/source"
)

// With Options.PartitionColumns, the columns in the names of a version's directories are fields of its values, behind
// those of the record.

type pathColumn struct {
	name    string
	integer bool // every value that is not null is one
}

// Columns are the columns in the names of the directories of a version.
type Columns []pathColumn

// setColumns finds the columns of the plan's files, if they are wanted. Errors wrap render.ErrField.
func (l *Loader) setColumns(plan *Plan) (err error) {
	switch {
	case !l.opts.PartitionColumns:
		return nil
	case plan.Format != FormatAvro && plan.Format != FormatParquet:
		err = fmt.Errorf("%w: partition_columns adds columns to the records of Avro and Parquet files, and these are of format %s: turn it off", render.ErrField, plan.Format)
	case plan.fields.Value != "":
		err = fmt.Errorf("%w: partition_columns adds columns to whole records, and value is %q: leave value out, or turn partition_columns off", render.ErrField, plan.fields.Value)
	default:
		plan.columns, err = inferColumns(plan.Files)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.src.Path(plan.DB, plan.Version), err)
	}
	return nil
}

// inferColumns finds the columns and their types. All files must be in directories of the same columns.
func inferColumns(files []source.File) (all Columns, err error) {
	for _, c := range source.Columns(files[0].Name) {
		all = append(all, pathColumn{c.Name, true})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: partition_columns is set, and %s is in no directory named column=value: turn it off", render.ErrField, files[0].Name)
	}
	for _, f := range files {
		columns := source.Columns(f.Name)
		if !slices.EqualFunc(columns, all, func(c source.Column, p pathColumn) bool { return c.Name == p.name }) {
			return nil, fmt.Errorf("%w: %s and %s are in directories of different columns: write them with the same ones, or turn partition_columns off", render.ErrField, files[0].Name, f.Name)
		}
		for i, c := range columns {
			_, err := strconv.ParseInt(c.Value, 10, 64)
			all[i].integer = all[i].integer && (c.Null || err == nil)
		}
	}
	return all, all.check()
}

// check refuses names that would be twice in a value.
func (cs Columns) check() error {
	for i, c := range cs {
		if slices.ContainsFunc(cs[:i], func(o pathColumn) bool { return o.name == c.name }) {
			return fmt.Errorf("%w: the column %q is twice in the names of directories: turn partition_columns off", render.ErrField, c.name)
		}
	}
	return nil
}

// extend makes a reader of whole records append the columns of the file's name to them. names are those of the record's
// fields.
func (cs Columns) extend(r records, path string, fields Fields, file string, names []string) (records, error) {
	for _, c := range cs {
		if slices.Contains(names, c.name) {
			return nil, fmt.Errorf("%s: %w: %q is a field of the records and a column in the names of directories: rename one of them, or turn partition_columns off", path, render.ErrField, c.name)
		}
	}
	if len(cs) == 0 || fields.Value != "" { // the value is the key
		return r, nil
	}
	return &extended{records: r, columns: cs.rendered(file)}, nil
}

// rendered returns the columns of a file as the end of a JSON object.
func (cs Columns) rendered(file string) (b []byte) {
	for i, c := range source.Columns(file) {
		b = render.AppendName(append(b, ','), c.Name)
		n, err := strconv.ParseInt(c.Value, 10, 64)
		switch {
		case c.Null:
			b = render.AppendJSON(b, nil)
		case err == nil && cs[i].integer:
			b = render.AppendJSON(b, n) // without leading zeros, as in Spark
		default:
			b = render.AppendJSON(b, c.Value)
		}
	}
	return append(b, '}')
}

// extended is a reader of JSON objects whose values have more fields at their end.
type extended struct {
	records
	columns []byte // ,"name":value}
	value   []byte
}

// Value returns the value with the columns, until the next Scan.
func (e *extended) Value() []byte {
	v := e.records.Value()
	if len(v) < 2 || v[len(v)-1] != '}' {
		return v // a null record
	}
	columns := e.columns
	if string(v) == "{}" {
		columns = columns[1:] // no comma
	}
	e.value = append(append(e.value[:0], v[:len(v)-1]...), columns...)
	return e.value
}
