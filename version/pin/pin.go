// Package pin owns the file _PIN in a database's directory of the source: what people have decided about its versions.
//
// Commands (pin, unpin, rollback, approve) read the file, change it and write it back; each node reads it at every look
// at the source, and its decisions (package version) follow it. The file is TOML:
//
//	version = "2026-01-30"      # serve this version and no other
//	exclude = ["2026-01-31"]    # never serve these
//	approve = ["2026-02-01"]    # serve these although a gate holds them
//	by = "ana@batch-01"
//	until = 2026-02-02T12:00:00Z  # from then on, version has no effect
//
//	[reasons]                   # by version
//	"2026-01-31" = "half of the input was missing"
//
// All keys are optional.
package pin

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"sequins/internal/names"
)

// FileName is the name of the file.
const FileName = "_PIN"

// MaxSize is the maximum size of the file, in bytes.
const MaxSize = 64 << 10

// File is the content of the file, and a part of the status of a database. The zero File decides nothing.
type File struct {
	Version string            `toml:"version,omitempty" json:"version,omitempty"` // the only version to be served, "" for any
	Exclude []string          `toml:"exclude,omitempty" json:"exclude,omitempty"` // versions that must not be served
	Approve []string          `toml:"approve,omitempty" json:"approve,omitempty"` // versions that may be served although a gate holds them
	By      string            `toml:"by,omitempty" json:"by,omitempty"`           // who wrote the file
	Until   time.Time         `toml:"until,omitempty" json:"until,omitzero"`      // when Version ends to have effect; zero: never
	Reasons map[string]string `toml:"reasons,omitempty" json:"reasons,omitempty"` // why the versions above are pinned, excluded or approved
}

// Parse parses the content of a file. Unknown keys, invalid names of versions and more than MaxSize bytes in the encoded form are errors.
func Parse(data []byte) (File, error) {
	var raw struct {
		File
		Until any `toml:"until"` // each node would take a time without a zone for one of its own
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // as some editors write
	d := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := d.Decode(&raw); err != nil {
		return File{}, describe(err)
	}
	until, ok := raw.Until.(time.Time)
	if raw.Until != nil && !ok {
		return File{}, fmt.Errorf("until = %v needs a date, a time and a zone, such as 2026-02-02T12:00:00Z", raw.Until)
	}
	f := raw.File
	f.Until = until
	if _, err := f.Encode(); err != nil { // nodes record it as it is encoded
		return File{}, err
	}
	return f, nil
}

// describe names the place of an error of TOML, and replaces the errors that name types of Go.
func describe(err error) error {
	if unknown, is := errors.AsType[*toml.StrictMissingError](err); is && len(unknown.Errors) > 0 {
		row, _ := unknown.Errors[0].Position()
		return fmt.Errorf("line %d: unknown key %s; the keys are version, exclude, approve, by, until and reasons", row, strings.Join(unknown.Errors[0].Key(), "."))
	}
	text := strings.TrimPrefix(err.Error(), "toml: ")
	for _, begin := range []string{"cannot decode", "cannot store", "parsing time"} {
		if strings.HasPrefix(text, begin) {
			text = "the value is of the wrong type: version and by are strings, exclude and approve are arrays of strings, until is a time such as 2026-02-02T12:00:00Z, and reasons is a table of strings"
		}
	}
	if decode, is := errors.AsType[*toml.DecodeError](err); is {
		row, column := decode.Position()
		return fmt.Errorf("line %d, column %d: %s", row, column, text)
	}
	return errors.New(text)
}

func (f File) check() error {
	for _, name := range slices.Concat(f.Exclude, f.Approve, []string{f.Version}) {
		if name != "" && !names.Valid(name) {
			return fmt.Errorf("%q is not the name of a version", name)
		}
	}
	if f.Version != "" && slices.Contains(f.Exclude, f.Version) {
		return fmt.Errorf("version %s is both pinned and excluded", f.Version)
	}
	for _, name := range f.Approve {
		if slices.Contains(f.Exclude, name) {
			return fmt.Errorf("version %s is both approved and excluded", name)
		}
	}
	return nil
}

// Encode returns the content of a file, which Parse accepts, or the error of Parse.
func (f File) Encode() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	data, err := toml.Marshal(f)
	if err == nil && len(data) > MaxSize {
		err = fmt.Errorf("%d bytes, more than the limit of %d", len(data), MaxSize)
	}
	return data, err
}

// Pinned returns the version that is pinned at a time, "" if none is.
func (f File) Pinned(now time.Time) string {
	if !f.Until.IsZero() && !now.Before(f.Until) {
		return ""
	}
	return f.Version
}

// At returns what the file says about versions at a time: Version, unless its time is over, Exclude and Approve.
func (f File) At(now time.Time) File {
	return File{Version: f.Pinned(now), Exclude: f.Exclude, Approve: f.Approve}
}

// Allows reports whether a version may be served.
func (f File) Allows(name string) bool {
	return (f.Version == "" || f.Version == name) && !slices.Contains(f.Exclude, name)
}

// Excuses reports whether a version may be served although a gate holds it.
func (f File) Excuses(name string) bool { return f.Version == name || slices.Contains(f.Approve, name) }

// Explain records why the version that was decided about last is pinned, excluded or approved. Without a reason, the one that it
// has stays. It forgets the reasons for versions of which nothing is decided any more.
func (f *File) Explain(version, reason string) {
	maps.DeleteFunc(f.Reasons, func(name, _ string) bool {
		return name != f.Version && !slices.Contains(f.Exclude, name) && !slices.Contains(f.Approve, name)
	})
	if reason == "" {
		return
	}
	if f.Reasons == nil {
		f.Reasons = make(map[string]string)
	}
	f.Reasons[version] = reason
}

// Equal reports whether two files are the same.
func (f File) Equal(g File) bool {
	return f.Same(g) && f.By == g.By && f.Until.Equal(g.Until) && maps.Equal(f.Reasons, g.Reasons)
}

// Same reports whether two files decide the same, for whatever reasons.
func (f File) Same(g File) bool {
	return f.Version == g.Version && (f.Version == "" || f.Until.Equal(g.Until)) && slices.Equal(f.Exclude, g.Exclude) && slices.Equal(f.Approve, g.Approve)
}

// String returns f as a line for people: pinned to 2026-01-30, 2026-01-31 excluded: half of the input was missing (by ana).
func (f *File) String() string {
	var parts []string
	add := func(what, version string) {
		if reason := f.Reasons[version]; reason != "" {
			what += ": " + reason
		}
		parts = append(parts, what)
	}
	if f.Version != "" {
		s := "pinned to " + f.Version
		if !f.Until.IsZero() {
			s += " until " + f.Until.UTC().Format(time.RFC3339)
		}
		add(s, f.Version)
	}
	for _, version := range f.Exclude {
		add(version+" excluded", version)
	}
	for _, version := range f.Approve {
		add(version+" approved", version)
	}
	s := strings.Join(parts, ", ")
	if f.By != "" {
		s += " (by " + f.By + ")"
	}
	return s
}
