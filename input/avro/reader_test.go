package avro

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"sequins/internal/render"
	"sequins/test/expect"
	"sequins/test/harness"
)

// scan reads all of a file into "key=value" lines.
func scan(r io.Reader, paths render.Paths) ([]string, error) {
	rd, err := NewReader(r, "file.avro", paths)
	if err != nil {
		return nil, err
	}
	var out []string
	for rd.Scan() {
		out = append(out, string(rd.Key())+"="+string(rd.Value()))
	}
	return out, errors.Join(rd.Err(), rd.Close())
}

// Files of Avro's own writer are read, in every codec.
func TestFixtures(t *testing.T) {
	for _, f := range harness.FixturesOf(t, "avro") {
		for _, name := range f.Meta.Names {
			raw, err := os.ReadFile(filepath.Join(f.Dir, name))
			expect.NoError(t, err)
			got, err := scan(iotest.OneByteReader(bytes.NewReader(raw)), render.Paths{Key: f.Meta.KeyField, Value: f.Meta.ValueField})
			if err != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
			for r := range f.Of(t, name) {
				if len(got) == 0 || got[0] != string(r.Key)+"="+string(r.Value) {
					t.Fatalf("%s/%s: got %.1q, want %s=%s", f.Name, name, got, r.Key, r.Value)
				}
				got = got[1:]
			}
			if len(got) > 0 {
				t.Errorf("%s/%s: more records: %q", f.Name, name, got)
			}
		}
	}
}

// Each field read alone is the same as within the whole record: skipped fields are skipped completely.
func TestFieldsByThemselves(t *testing.T) {
	f := harness.FixtureByName(t, "avro-deflate")
	raw, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
	expect.NoError(t, err)
	whole, err := NewReader(bytes.NewReader(raw), "file.avro", render.Paths{Key: f.Meta.KeyField})
	expect.NoError(t, err)
	var records []map[string]json.RawMessage
	for whole.Scan() {
		var r map[string]json.RawMessage
		expect.NoError(t, json.Unmarshal(whole.Value(), &r))
		records = append(records, r)
	}
	if len(records) == 0 || whole.Err() != nil {
		t.Fatal(len(records), whole.Err())
	}
	for _, field := range whole.root.fields {
		rd, err := NewReader(bytes.NewReader(raw), "file.avro", render.Paths{Key: f.Meta.KeyField, Value: field.name})
		expect.NoError(t, err)
		i := 0
		for ; rd.Scan(); i++ {
			got, want := string(rd.Value()), string(records[i][field.name])
			var text string
			if json.Unmarshal([]byte(want), &text) == nil { // a string, or bytes in base64, or null
				if raw, err := base64.StdEncoding.DecodeString(text); err == nil && string(raw) == got {
					continue
				}
				want = text
			}
			if got != want {
				t.Errorf("%s of record %d: %q, want %q", field.name, i, got, want)
			}
		}
		if i != len(records) || rd.Err() != nil {
			t.Errorf("%s: %d records of %d, %v", field.name, i, len(records), rd.Err())
		}
	}
}

// write returns a file of values written by the library.
func write(t *testing.T, schema string, values ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := ocf.NewWriter(&b, avro.MustParse(schema))
	expect.NoError(t, err)
	for _, v := range values {
		expect.NoError(t, w.Encode(v))
	}
	expect.NoError(t, w.Close())
	return b.Bytes()
}

const tree = `{"type":"record","name":"a.Tree","fields":[
	{"name":"k","type":["null","string","long",{"type":"fixed","name":"F","size":2}]},
	{"name":"left","type":["null","Tree"]},
	{"name":"m","type":{"type":"map","values":["null","F","Tree"]}}]}`

// Schemas that refer to themselves, unions of several, maps.
func TestUnionsAndReferences(t *testing.T) {
	leaf := map[string]any{"k": "leaf", "left": nil, "m": map[string]any{}}
	raw := write(t, tree,
		map[string]any{"k": "x", "left": leaf, "m": map[string]any{"c": leaf}},
		map[string]any{"k": int64(7), "left": nil, "m": map[string]any{"a": nil}},
		map[string]any{"k": map[string]any{"a.F": []byte("ab")}, "left": nil, "m": map[string]any{"b": []byte("\xff\x00")}})
	small := `{"k":"leaf","left":null,"m":{}}`
	tests := []struct {
		paths render.Paths
		want  []string
	}{
		{render.Paths{Key: "k"}, []string{
			`x={"k":"x","left":` + small + `,"m":{"c":` + small + `}}`,
			`7={"k":7,"left":null,"m":{"a":null}}`, `ab={"k":"YWI=","left":null,"m":{"b":"/wA="}}`}},
		{render.Paths{Key: "k", Value: "left.k"}, []string{"x=leaf", "7=", "ab="}},
		{render.Paths{Key: "k", Value: "left.left.m"}, []string{"x=", "7=", "ab="}},
	}
	for _, tt := range tests {
		got, err := scan(bytes.NewReader(raw), tt.paths)
		if err != nil || strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%+v: %q, %v; want %q", tt.paths, got, err, tt.want)
		}
	}
}

// Named types may be called like kinds of types: only the names of primitive types are reserved.
func TestNamesOfKinds(t *testing.T) {
	const schema = `{"type":"record","name":"top","namespace":"NS","fields":[{"name":"k","type":"string"},
		{"name":"e","type":{"type":"enum","name":"KIND","symbols":["A","B"]}},
		{"name":"f","type":{"type":"enum","name":"other","symbols":["C","D"]}},
		{"name":"g","type":{"type":"fixed","name":"two","size":2}},
		{"name":"in","type":{"type":"record","name":"inner","fields":[{"name":"a","type":"string"}]}},
		{"name":"l","type":{"type":"array","items":"long"}},
		{"name":"m","type":{"type":"map","values":"string"}},
		{"name":"again","type":"REF"}]}`
	value := map[string]any{"k": "x", "e": "B", "f": "D", "g": []byte("\x00\xff"), "in": map[string]any{"a": "y"},
		"l": []any{int64(1)}, "m": map[string]any{"n": "z"}, "again": "A"}
	const want = `x={"k":"x","e":"B","f":"D","g":"AP8=","in":{"a":"y"},"l":[1],"m":{"n":"z"},"again":"A"}`
	for _, kind := range []string{"enum", "fixed", "array", "map", "record", "error"} {
		file := write(t, strings.NewReplacer("NS", "a.b", "KIND", kind, "REF", "a.b."+kind).Replace(schema), value)
		got, err := scan(bytes.NewReader(file), render.Paths{Key: "k"})
		if err != nil || strings.Join(got, "") != want {
			t.Errorf("%s: %q, %v; want %q", kind, got, err, want)
		}
	}
}

// A name without a namespace is that of the enclosing one, if there is such a type, also where one without any is known.
func TestNamesInNamespaces(t *testing.T) {
	const schema = `{"type":"record","name":"a.R","fields":[{"name":"k","type":"string"},
		{"name":"x","type":{"type":"record","name":"T","namespace":"","fields":[{"name":"q","type":{"type":"enum","name":"E","symbols":["A","B"]}}]}},
		{"name":"y","type":{"type":"enum","name":"E","symbols":["P","Q"]}},
		{"name":"z","type":"E"}]}`
	file := write(t, schema, map[string]any{"k": "x", "x": map[string]any{"q": "B"}, "y": "Q", "z": "Q"})
	got, err := scan(bytes.NewReader(file), render.Paths{Key: "k"})
	if want := `x={"k":"x","x":{"q":"B"},"y":"Q","z":"Q"}`; err != nil || strings.Join(got, "") != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestErrors(t *testing.T) {
	raw := write(t, tree, map[string]any{"k": "x", "left": nil, "m": map[string]any{}}, map[string]any{"k": nil, "left": nil, "m": map[string]any{}})
	tests := []struct {
		file  []byte
		paths render.Paths
		is    error
		says  string
	}{
		{raw, render.Paths{}, render.ErrField, "the fields are k, left, m"},
		{raw, render.Paths{Key: "nope"}, render.ErrField, `"nope"`},
		{raw, render.Paths{Key: "m"}, render.ErrField, `"m", of type map`},
		{raw, render.Paths{Key: "left"}, render.ErrField, `"left"`},
		{raw, render.Paths{Key: "k", Value: "k.x"}, render.ErrField, `"k.x"`},
		{raw, render.Paths{Key: "k"}, render.ErrNullKey, "record 1"},
		{write(t, `"string"`, "x"), render.Paths{Key: "k"}, render.ErrField, "type string"},
		{nil, render.Paths{Key: "k"}, ErrCorrupt, "in the header"},
		{[]byte("Hello, reader."), render.Paths{Key: "k"}, ErrCorrupt, "in the header"},
		{bytes.Replace(raw, []byte("null"), []byte("nuLL"), 1), render.Paths{Key: "k"}, ErrCorrupt, "file.avro"},
	}
	for _, tt := range tests {
		got, err := scan(bytes.NewReader(tt.file), tt.paths)
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "file.avro") {
			t.Errorf("%+v: %q, %v; want %v, %q", tt.paths, got, err, tt.is, tt.says)
		}
	}
	broken := errors.New("the line is cut")
	_, err := scan(io.MultiReader(bytes.NewReader(raw[:len(raw)-20]), iotest.ErrReader(broken)), render.Paths{Key: "k"})
	if !errors.Is(err, broken) || errors.Is(err, ErrCorrupt) {
		t.Errorf("an error of the source: %v", err)
	}
}

// A damaged file gives records or ErrCorrupt, and never a panic; a truncated one gives at most the records of its
// complete blocks.
func TestDamage(t *testing.T) {
	for _, f := range harness.FixturesOf(t, "avro") {
		paths := render.Paths{Key: f.Meta.KeyField, Value: f.Meta.ValueField}
		raw, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
		expect.NoError(t, err)
		whole, err := scan(bytes.NewReader(raw), paths)
		expect.NoError(t, err)
		for n := 0; n < len(raw); n += 1 + len(raw)/60 {
			got, err := scan(bytes.NewReader(raw[:n]), paths)
			if err == nil && len(got) >= len(whole) || err != nil && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s cut off at %d: %d records, %v", f.Name, n, len(got), err)
			}
			bad := bytes.Clone(raw)
			bad[n] ^= 1 << (n % 8)
			_, err = scan(bytes.NewReader(bad), paths)
			if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, render.ErrField) && !errors.Is(err, render.ErrNullKey) {
				t.Errorf("%s, a bit flipped at %d: %v", f.Name, n, err)
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, fx := range harness.FixturesOf(f, "avro") {
		raw, err := os.ReadFile(filepath.Join(fx.Dir, fx.Meta.Names[0]))
		expect.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := scan(bytes.NewReader(raw), render.Paths{Key: "id"})
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, render.ErrField) && !errors.Is(err, render.ErrNullKey) {
			t.Fatal(err)
		}
	})
}

// What is not UTF-8 is U+FFFD in JSON, and itself as a value by itself.
func TestMapsAndText(t *testing.T) {
	raw := write(t, tree, map[string]any{"k": "a\xff", "left": nil, "m": map[string]any{"\xff": nil}})
	for path, want := range map[string]string{
		"m": "a\xff=" + `{"` + "\ufffd" + `":null}`,
		"k": "a\xff=a\xff",
		"":  "a\xff=" + `{"k":"a` + "\ufffd" + `","left":null,"m":{"` + "\ufffd" + `":null}}`,
	} {
		got, err := scan(bytes.NewReader(raw), render.Paths{Key: "k", Value: path})
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, %v; want %q", path, got, err, want)
		}
	}
}
