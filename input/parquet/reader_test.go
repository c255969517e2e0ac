package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/internal/render"
	"sequins/test/expect"
	"sequins/test/harness"
)

// scan reads all of a file into "key=value" lines.
func scan(r io.ReaderAt, size int64, paths render.Paths) ([]string, error) {
	rd, err := NewReader(r, size, "file.parquet", paths)
	if err != nil {
		return nil, err
	}
	var out []string
	for rd.Scan() {
		out = append(out, string(rd.Key())+"="+string(rd.Value()))
	}
	return out, errors.Join(rd.Err(), rd.Close())
}

func scanBytes(raw []byte, paths render.Paths) ([]string, error) {
	return scan(bytes.NewReader(raw), int64(len(raw)), paths)
}

// Files of parquet-mr are read, in every codec.
func TestFixtures(t *testing.T) {
	for _, f := range harness.FixturesOf(t, "parquet") {
		for _, name := range f.Meta.Names {
			raw, err := os.ReadFile(filepath.Join(f.Dir, name))
			expect.NoError(t, err)
			got, err := scanBytes(raw, render.Paths{Key: f.Meta.KeyField, Value: f.Meta.ValueField})
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

// wide has fields that the fixtures lack: types without annotation, INT96, repeated fields without a list, unsigned
// numbers, deep nesting.
type wide struct {
	K      string
	Plain  []byte
	Old    [3]uint32
	Small  uint8
	Large  uint64
	Days   int32
	ID     [16]byte
	Bare   []int64
	Lists  [][]*string
	Map    []entry
	Absent *struct{ X *int32 }
}

type entry struct {
	key    string
	values []int32
}

var wideFields = []schemaElement{
	testGroup("row", 0, 11, 0),
	testLeaf("k", 0, physicalBytes, logicalType{id: logicalString}),
	testLeaf("plain", 0, physicalBytes, logicalType{}),
	testLeaf("old", 0, physicalInt96, logicalType{}),
	testLeaf("small", 0, physicalInt32, logicalType{id: logicalInteger, width: 8}),
	testLeaf("large", 0, physicalInt64, logicalType{id: logicalInteger, width: 64}),
	testLeaf("days", 0, physicalInt32, logicalType{id: logicalDate}),
	{name: "id", leaf: true, physical: physicalFixed, length: 16, logical: logicalType{id: logicalUUID}},
	testLeaf("bare", repeated, physicalInt64, logicalType{}),
	testGroup("lists", 0, 1, logicalList),
	testGroup("list", repeated, 1, 0),
	testGroup("element", 0, 1, logicalList),
	testGroup("list", repeated, 1, 0),
	testLeaf("element", optional, physicalBytes, logicalType{id: logicalString}),
	testGroup("map", 0, 1, logicalMap),
	testGroup("key_value", repeated, 2, 0),
	testLeaf("key", 0, physicalBytes, logicalType{id: logicalString}),
	testLeaf("value", repeated, physicalInt32, logicalType{}),
	testGroup("absent", optional, 1, 0),
	testLeaf("x", optional, physicalInt32, logicalType{}),
}

// write returns a file with the rows, in pages of perPage values.
func write(perPage int, rows ...wide) []byte {
	c := [11]levelled{7: {maxRep: 1, maxDef: 1}, 8: {maxRep: 2, maxDef: 3}, 9: {maxRep: 1, maxDef: 1}, 10: {maxRep: 2, maxDef: 2}}
	absent := levelled{maxDef: 2}
	for _, r := range rows {
		for i, v := range [][]byte{
			plainText(r.K), plainText(string(r.Plain)), nil, plain32(int32(r.Small)), plain64(int64(r.Large)), plain32(r.Days), r.ID[:],
		} {
			if i == 2 {
				for _, n := range r.Old {
					v = binary.LittleEndian.AppendUint32(v, n)
				}
			}
			c[i].add(0, 0, v)
		}
		for i, n := range r.Bare {
			c[7].add(min(i, 1), 1, plain64(n))
		}
		if len(r.Bare) == 0 {
			c[7].add(0, 0, nil)
		}
		writeLists(&c[8], r.Lists)
		for i, e := range r.Map {
			c[9].add(min(i, 1), 1, plainText(e.key))
			for j, n := range e.values {
				c[10].add(max(2*min(j, 1), min(i, 1)), 2, plain32(n))
			}
		}
		if len(r.Map) == 0 {
			c[9].add(0, 0, nil)
			c[10].add(0, 0, nil)
		}
		switch {
		case r.Absent == nil:
			absent.add(0, 0, nil)
		case r.Absent.X == nil:
			absent.add(0, 1, nil)
		default:
			absent.add(0, 2, plain32(*r.Absent.X))
		}
	}
	var columns []testColumn
	for i := range c {
		columns = append(columns, c[i].column(perPage))
	}
	return testFile(int64(len(rows)), wideFields, append(columns, absent.column(perPage)))
}

func writeLists(c *levelled, lists [][]*string) {
	if len(lists) == 0 {
		c.add(0, 0, nil)
	}
	for i, list := range lists {
		if len(list) == 0 {
			c.add(min(i, 1), 1, nil)
		}
		for j, s := range list {
			rep := max(2*min(j, 1), min(i, 1))
			if s == nil {
				c.add(rep, 2, nil)
			} else {
				c.add(rep, 3, plainText(*s))
			}
		}
	}
}

func TestTypes(t *testing.T) {
	seven, x := int32(7), strings.Repeat("x", 100)
	rows := []wide{
		{K: "a", Plain: []byte{0xff}, Old: [3]uint32{1, 0, 2440588}, Small: 200, Large: 1 << 63, Days: 1, Bare: []int64{1, -2},
			Map: []entry{{"m", []int32{1, 2}}}},
		{K: "b", Old: [3]uint32{0, 0, 2440587}},
	}
	rows[1].Absent = &struct{ X *int32 }{&seven}
	rows[1].Lists = [][]*string{{&x, nil}, {}, {&rows[1].K, &x, &x}}
	raw := write(1000, rows...)
	all := func(raw []byte) string {
		got, err := scanBytes(raw, render.Paths{Key: "k"})
		return fmt.Sprint(got, err)
	}
	if whole, split := all(raw), all(write(1, rows...)); whole != split {
		t.Errorf("in one page: %s\nin several: %s", whole, split)
	}
	got, err := scanBytes(raw, render.Paths{Key: "k"})
	want := []string{
		`a={"k":"a","plain":"/w==","old":"1970-01-01T00:00:00.000000001Z","small":200,"large":9223372036854775808,"days":"1970-01-02",` +
			`"id":"00000000-0000-0000-0000-000000000000","bare":[1,-2],"lists":[],"map":{"m":[1,2]},"absent":null}`,
		`b={"k":"b","plain":"","old":"1969-12-31T00:00:00.000000000Z","small":0,"large":0,"days":"1970-01-01",` +
			`"id":"00000000-0000-0000-0000-000000000000","bare":[],"lists":[["` + x + `",null],[],["b","` + x + `","` + x + `"]],"map":{},"absent":{"x":7}}`,
	}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got  %s\nwant %s\n%v", strings.Join(got, "\n"), strings.Join(want, "\n"), err)
	}
	for path, want := range map[string]string{"absent.x": "a=,b=7", "absent": `a=,b={"x":7}`, "bare": "a=[1,-2],b=[]", "k": "a=a,b=b"} {
		got, err := scanBytes(raw, render.Paths{Key: "k", Value: path})
		if err != nil || strings.Join(got, ",") != want {
			t.Errorf("%s: %q, %v; want %s", path, got, err, want)
		}
	}
}

func TestErrors(t *testing.T) {
	raw := write(10, wide{K: "x"})
	tests := []struct {
		file  []byte
		paths render.Paths
		is    error
		says  string
	}{
		{raw, render.Paths{}, render.ErrField, "the fields are k, plain, old"},
		{raw, render.Paths{Key: "nope"}, render.ErrField, `"nope"`},
		{raw, render.Paths{Key: "bare"}, render.ErrField, `"bare"`},
		{raw, render.Paths{Key: "absent"}, render.ErrField, `"absent"`},
		{raw, render.Paths{Key: "k", Value: "lists.x"}, render.ErrField, `"lists.x"`},
		{raw, render.Paths{Key: "absent.x"}, render.ErrNullKey, "row 0"},
		{nil, render.Paths{Key: "k"}, ErrCorrupt, "too short"},
		{[]byte("Hello, dear reader."), render.Paths{Key: "k"}, ErrCorrupt, "PAR1"},
		{append(bytes.Clone(raw[:len(raw)-8]), "\xff\xff\xff\xffPAR1"...), render.Paths{Key: "k"}, ErrCorrupt, "footer"},
	}
	for _, tt := range tests {
		got, err := scanBytes(tt.file, tt.paths)
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "file.parquet") {
			t.Errorf("%+v: %q, %v; want %v, %q", tt.paths, got, err, tt.is, tt.says)
		}
	}
}

// brokenAt fails, or counts what is read.
type brokenAt struct {
	io.ReaderAt
	fail error
	from int64 // which reads fail
	n    int64
}

func (b *brokenAt) ReadAt(p []byte, off int64) (int, error) {
	if b.fail != nil && off < b.from {
		return 0, b.fail
	}
	n, err := b.ReaderAt.ReadAt(p, off)
	b.n += int64(n)
	return n, err
}

func TestSourceErrors(t *testing.T) {
	rows := make([]wide, 5000)
	for i := range rows {
		rows[i].K, rows[i].Plain = "k", bytes.Repeat([]byte{byte(i), byte(i >> 8), byte(i * 7)}, 30)
	}
	raw := write(1000, rows...)
	broken := errors.New("the line is cut")
	for _, from := range []int64{int64(len(raw)), int64(len(raw)) - keptTail} {
		_, err := scan(&brokenAt{bytes.NewReader(raw), broken, from, 0}, int64(len(raw)), render.Paths{Key: "k"})
		if !errors.Is(err, broken) || errors.Is(err, ErrCorrupt) {
			t.Errorf("an error of the source: %v", err)
		}
	}
	// If most of a file is in one column, reading the others fetches little.
	counted := &brokenAt{ReaderAt: bytes.NewReader(raw)}
	if got, err := scan(counted, int64(len(raw)), render.Paths{Key: "k", Value: "days"}); err != nil || len(got) != len(rows) {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	if counted.n > int64(len(raw))/2 {
		t.Errorf("%d of %d bytes were read for two columns", counted.n, len(raw))
	}
}

// A damaged file gives rows or ErrCorrupt, and never a panic; a truncated one gives no rows.
func TestDamage(t *testing.T) {
	for _, f := range harness.FixturesOf(t, "parquet") {
		paths := render.Paths{Key: f.Meta.KeyField, Value: f.Meta.ValueField}
		raw, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
		expect.NoError(t, err)
		for n := 0; n < len(raw); n += 1 + len(raw)/40 {
			if got, err := scanBytes(raw[:n], paths); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s cut off at %d: %d rows, %v", f.Name, n, len(got), err)
			}
			bad := bytes.Clone(raw)
			bad[n] ^= 1 << (n % 8)
			_, err = scanBytes(bad, paths)
			if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, render.ErrField) && !errors.Is(err, render.ErrNullKey) {
				t.Errorf("%s, a bit flipped at %d: %v", f.Name, n, err)
			}
		}
	}
}

// A column that is asked for by a name that another one has too, or that can be meant by it, is an error; others are not.
// A flipped bit can end a struct of the footer early. Then the fields behind it are missing, and not zero: the file is
// damaged, and not without rows.
func TestDamagedFooter(t *testing.T) {
	f := harness.FixturesOf(t, "parquet")[0]
	raw, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
	expect.NoError(t, err)
	paths := render.Paths{Key: f.Meta.KeyField, Value: f.Meta.KeyField}
	rows, err := scanBytes(raw, paths)
	expect.NoError(t, err)
	footer := len(raw) - 8 - int(binary.LittleEndian.Uint32(raw[len(raw)-8:]))
	for bit := 8 * footer; bit < 8*len(raw); bit++ {
		raw[bit/8] ^= 1 << (bit % 8)
		if got, err := scanBytes(raw, paths); err == nil && len(got) != len(rows) {
			t.Errorf("%s, bit %d of byte %d of the footer: %d rows, want %d", f.Name, bit%8, bit/8-footer, len(got), len(rows))
		}
		raw[bit/8] ^= 1 << (bit % 8)
	}
}

func TestDuplicateColumns(t *testing.T) {
	var column levelled
	column.add(0, 0, plainText("a"))
	column.add(0, 0, plainText("b"))
	group := func(name string, children int64) schemaElement { return testGroup(name, 0, children, 0) }
	text := func(name string) schemaElement { return testLeaf(name, 0, physicalBytes, logicalType{}) }
	twice := []schemaElement{group("row", 4), text("k"), text("v"), text("v"), text("w")}
	dotted := []schemaElement{group("row", 3), text("k"), text("a.b"), group("a", 2), text("b"), text("c")}
	nested := []schemaElement{group("row", 2), text("k"), group("g", 2), text("x"), text("x")}
	for _, tt := range []struct {
		fields     []schemaElement
		key, value string
		want       string
	}{
		{twice, "k", "v", "two columns named v"},
		{twice, "v", "k", "two columns named v"},
		{twice, "k", "", "two columns named v"},
		{twice, "k", "w", ""},
		{dotted, "a.b", "k", `two columns that can be meant by a.b: ["a.b"] and ["a" "b"]`},
		{dotted, "k", "a.b", "can be meant by a.b"},
		{dotted, "k", "a.c", ""},
		{dotted, "k", "", ""},
		{nested, "k", "g", "two columns named g.x"},
		{nested, "k", "", "two columns named g.x"},
		{nested, "k", "k", ""},
	} {
		var columns []testColumn
		for _, f := range tt.fields {
			if f.leaf {
				columns = append(columns, column.column(10))
			}
		}
		got, err := scanBytes(testFile(2, tt.fields, columns), render.Paths{Key: tt.key, Value: tt.value})
		switch {
		case tt.want == "" && (err != nil || len(got) != 2):
			t.Errorf("%s and %q of %d fields: %q, %v", tt.key, tt.value, len(tt.fields), got, err)
		case tt.want != "" && (!errors.Is(err, render.ErrField) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s and %q of %d fields: %v; want %s", tt.key, tt.value, len(tt.fields), err, tt.want)
		}
	}
}

// Entries of a map are in the order of the file, each as often as it is there. What is not UTF-8 is U+FFFD in JSON, and
// itself as a value by itself.
func TestMapsAndText(t *testing.T) {
	raw := write(10, wide{K: "a\xff", Plain: []byte{0xff}, Map: []entry{
		{"p", []int32{1}}, {"q", []int32{2}}, {"p", []int32{3}}, {"\xff", []int32{4}}, {"\xfe", []int32{5}}, {"\xff\xff", []int32{6}}}})
	for path, want := range map[string]string{
		"map": "a\xff=" + `{"p":[1],"q":[2],"p":[3],"` + "\ufffd" + `":[4],"` + "\ufffd" + `":[5],"` + "\ufffd\ufffd" + `":[6]}`,
		"k":   "a\xff=a\xff",
	} {
		if got, err := scanBytes(raw, render.Paths{Key: "k", Value: path}); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, %v; want %q", path, got, err, want)
		}
	}
	got, err := scanBytes(raw, render.Paths{Key: "k"})
	if err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "a\xff="+`{"k":"a`+"\ufffd"+`",`) {
		t.Errorf("the whole record: %q, %v", got, err)
	}
}
