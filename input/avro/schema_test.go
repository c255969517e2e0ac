package avro

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"sequins/internal/render"
)

// record returns a file with one record, of a schema and its encoding.
func record(schema, data string) []byte { return makeContainer(schema, "null", 1, []byte(data)) }

// Names that the specification does not allow are read, as Java does, and are served as they are.
func TestNamesOfWriters(t *testing.T) {
	const schema = `{"type":"record","name":"NAME","namespace":"SPACE","fields":[{"name":"KEY","type":"string"},
		{"name":"e","type":{"type":"enum","name":"E-1","symbols":["RED-ISH","größer als","1"]}},
		{"name":"again","type":["null","REF"]}]}`
	for _, n := range []struct{ name, space, key, ref string }{
		{"Root", "big-query.my-project", "user-id", "E-1"},
		{"Inner", "com.example.Outer$", "a$b", "com.example.Outer$.E-1"},
		{"topLevelRecord", ".leading", "größe", ".leading.E-1"},
		{"two words", "", "1st key", "E-1"},
		{"1", "日本", "a b", "日本.E-1"},
		{".R", "ignored", "k", "E-1"},
		{"", "", "", "E-1"},
	} {
		file := record(strings.NewReplacer("NAME", n.name, "SPACE", n.space, "KEY", n.key, "REF", n.ref).Replace(schema), "\x02x\x00\x02\x02")
		if n.key != "" {
			got, err := scan(bytes.NewReader(file), render.Paths{Key: n.key, Value: "again"})
			if err != nil || !slices.Equal(got, []string{"x=größer als"}) {
				t.Errorf("%+v: %q, %v", n, got, err)
			}
		}
		got, err := scan(bytes.NewReader(file), render.Paths{NoKey: true})
		if want := `={"` + n.key + `":"x","e":"RED-ISH","again":"größer als"}`; err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%+v: %q, %v; want %s", n, got, err, want)
		}
	}
}

// A default that does not fit its type is accepted as by Java; so is a type within a type.
func TestSchemasOfWriters(t *testing.T) {
	for _, schema := range []string{
		`{"type":"record","name":"R","fields":[{"name":"k","type":"string","default":1},{"name":"v","type":["null","string"],"default":"x"}]}`,
		`{"type":"record","name":"R","doc":"// no \"comment */","fields":[{"name":"k","type":"string"},{"name":"v","type":{"type":["null",{"type":"string"}]}}]}`,
		`{"type":{"type":"error","name":"R","aliases":[3],"fields":[{"name":"k","type":{"type":{"type":"string"}}},{"name":"v","type":["null","string"],"order":7}]}}`,
	} {
		data := "\x02a\x02\x02b"
		if !strings.Contains(schema, "null") {
			data = "\x02a\x02b"
		}
		got, err := scan(bytes.NewReader(record(schema, data)), render.Paths{Key: "k", Value: "v"})
		if err != nil || !slices.Equal(got, []string{"a=b"}) {
			t.Errorf("%s: %q, %v", schema, got, err)
		}
	}
}

// Schemas that say nothing certain are errors that say why.
func TestBadSchemas(t *testing.T) {
	deep := strings.Repeat(`["null",{"type":"array","items":`, 400) + `"null"` + strings.Repeat("}]", 400)
	for schema, says := range map[string]string{
		`{"type":"record"`: "not JSON",
		`/* x */ "string"`: "not JSON",
		`"string" "int"`:   "more than one",
		`{"type":"record","name":"R","fields":[{"name":"k","type":"strin"}]}`:                                                                  `unknown type "strin"`,
		`{"type":"record","name":"R","fields":[{"name":"k"}]}`:                                                                                 "missing",
		`{"type":"record","name":"R","fields":[{"type":"int"}]}`:                                                                               "has no name",
		`{"type":"record","fields":[]}`:                                                                                                        "has no name",
		`{"type":"record","name":"R"}`:                                                                                                         "no list of fields",
		`{"type":"record","name":"R","fields":[{"name":"k","type":"int"},{"name":"k","type":"int"}]}`:                                          `two fields "k"`,
		`{"type":"record","name":"R","fields":[{"name":"k","type":{"type":"fixed","name":"R","size":1}}]}`:                                     `"R" twice`,
		`{"type":"record","name":"R","fields":[{"name":"k","type":{"type":"fixed","name":"F","size":-1}}]}`:                                    "size of the fixed",
		`{"type":"record","name":"R","fields":[{"name":"k","type":{"type":"enum","name":"E"}}]}`:                                               "no list of symbols",
		`{"type":"record","name":"R","fields":[{"name":"k","type":["null",{"type":["null"]}]}]}`:                                               "union",
		`{"type":"record","name":"R","fields":[{"name":"k","type":{"type":"bytes","logicalType":"decimal","precision":20000,"scale":10001}}]}`: "10001 decimal places, over 10000",
		`{"type":"record","name":"R","fields":[{"name":"k","type":` + deep + `}]}`:                                                             "more than 500 levels",
		`{"type":"record","name":"` + strings.Repeat("n", 1<<20) + `","fields":[{"name":"k","type":{"type":"fixed","name":"` + strings.Repeat("n", 1<<20) + `","size":"` + "x" + `"}}]}`:           "",
		`{"type":"record","name":"R","fields":[{"name":"` + strings.Repeat("n", 1<<20) + `","type":"int"},{"name":"` + strings.Repeat("n", 1<<20) + `","type":"` + strings.Repeat("t", 9) + `"}]}`: "two fields",
	} {
		_, err := scan(bytes.NewReader(record(schema, "")), render.Paths{Key: "k"})
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), says) || len(err.Error()) > 1000 {
			t.Errorf("%.200s: %.1000v; want %q", schema, err, says)
		}
	}
}

// A logical type is followed on the base that it has in the specification, and is ignored on others; so is an invalid decimal.
func TestLogicalTypes(t *testing.T) {
	twelve, sixteen := "\x01\x00\x00\x00\x02\x00\x00\x00\xbc\x0b\x00\x00", "\xf8\x1d\x4f\xae\x7d\xec\x11\xd0\xa7\x65\x00\xa0\xc9\x1e\x6b\xf6"
	n := string(binary.AppendVarint(nil, 20000))
	decimals := func(base, rest string) string {
		return fmt.Sprintf(`%s,"logicalType":"decimal"%s`, base, rest)
	}
	for _, tt := range []struct{ typ, data, want string }{
		{`"int","logicalType":"date"`, n, "2024-10-04"},
		{`"long","logicalType":"date"`, n, "20000"},
		{`"int","logicalType":"time-millis"`, n, "00:00:20.000"},
		{`"long","logicalType":"time-millis"`, n, "20000"},
		{`"int","logicalType":"time-micros"`, n, "20000"},
		{`"long","logicalType":"time-micros"`, n, "00:00:00.020000"},
		{`"int","logicalType":"timestamp-millis"`, n, "20000"},
		{`"int","logicalType":"local-timestamp-nanos"`, n, "20000"},
		{`"int","logicalType":"uuid"`, n, "20000"},
		{`"int","logicalType":7`, n, "20000"},
		{`"int","logicalType":"decimal","precision":4`, n, "20000"},
		{`"string","logicalType":"decimal","precision":4`, "\x02\x05", "\x05"},
		{`"string","logicalType":"date"`, "\x02a", "a"},
		{`"bytes","logicalType":"uuid"`, "\x02a", "a"},
		{`"fixed","name":"F","size":12,"logicalType":"duration"`, twelve, "P1M2DT3.004S"},
		{`"fixed","name":"F","size":13,"logicalType":"duration"`, twelve + "x", twelve + "x"},
		{`"fixed","name":"F","size":16,"logicalType":"uuid"`, sixteen, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"},
		{`"fixed","name":"F","size":12,"logicalType":"uuid"`, twelve, twelve},
		{decimals(`"bytes"`, `,"precision":4,"scale":2`), "\x02\x05", "0.05"},
		{decimals(`"bytes"`, `,"precision":4,"scale":4`), "\x02\x05", "0.0005"},
		{decimals(`"bytes"`, `,"precision":4`), "\x02\x05", "5"},
		{decimals(`"bytes"`, `,"precision":4,"scale":5`), "\x02\x05", "\x05"},
		{decimals(`"bytes"`, `,"precision":4,"scale":-1`), "\x02\x05", "\x05"},
		{decimals(`"bytes"`, `,"precision":4,"scale":"2"`), "\x02\x05", "\x05"},
		{decimals(`"bytes"`, `,"precision":4,"scale":null`), "\x02\x05", "\x05"},
		{decimals(`"bytes"`, `,"precision":"4"`), "\x02\x05", "\x05"},
		{decimals(`"bytes"`, `,"precision":4.0`), "\x02\x05", "\x05"},
		{decimals(`"bytes"`, `,"precision":0`), "\x02\x05", "\x05"},
		{decimals(`"bytes"`, `,"precision":4294967300`), "\x02\x05", "\x05"},
		{decimals(`"bytes"`, `,"scale":2`), "\x02\x05", "\x05"},
		{decimals(`"fixed","name":"F","size":2`, `,"precision":4`), "\x01\x05", "261"},
		{decimals(`"fixed","name":"F","size":2`, `,"precision":5`), "\x01\x05", "\x01\x05"}, // 2 bytes hold 4 digits
		{decimals(`"fixed","name":"F","size":0`, `,"precision":1`), "", ""},
	} {
		got, err := scan(bytes.NewReader(record(fmt.Sprintf(one, `{"type":`+tt.typ+`}`), "\x02k"+tt.data)), render.Paths{Key: "k", Value: "v"})
		if err != nil || !slices.Equal(got, []string{"k=" + tt.want}) {
			t.Errorf("%s: %q, %v; want %q", tt.typ, got, err, tt.want)
		}
	}
}

// A time of day outside of a day is shown as it is.
func TestTimesOfDay(t *testing.T) {
	for typ, tests := range map[string]map[int64]string{
		"int time-millis":  {0: "00:00:00.000", 86_399_999: "23:59:59.999", 86_400_000: "24:00:00.000", 90_000_000: "25:00:00.000", -1: "-00:00:00.001"},
		"long time-micros": {86_400_000_000: "24:00:00.000000", 90_000_000_001: "25:00:00.000001", math.MinInt64: "-2562047788:00:54.775808"},
	} {
		base, logical, _ := strings.Cut(typ, " ")
		for n, want := range tests {
			file := record(fmt.Sprintf(one, fmt.Sprintf(`{"type":%q,"logicalType":%q}`, base, logical)), "\x02k"+string(varints(n)))
			got, err := scan(bytes.NewReader(file), render.Paths{Key: "k", Value: "v"})
			if err != nil || !slices.Equal(got, []string{"k=" + want}) {
				t.Errorf("%s %d: %q, %v; want %q", typ, n, got, err, want)
			}
		}
	}
}

// Any schema is one that records are decoded by, or an error, and is neither a panic nor the end of memory.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(tree), []byte("\x02\x02a\x00\x00"))
	f.Add([]byte(`/* c */ {"type":"record","name":"a-b","namespace":".x","fields":[{"name":"$","type":{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":4}},{"name":"f","type":["null","F"]}]} // "`), []byte("\x01\x02\x00"))
	f.Add([]byte(`{"type":{"type":"record","name":"R","fields":[{"name":"e","type":{"type":"enum","name":"E","symbols":["a"]}},{"name":"t","type":{"type":"int","logicalType":"time-millis"}}]}}`), []byte("\x00\x07"))
	f.Fuzz(func(t *testing.T, schema, data []byte) {
		file := makeContainer(string(schema), "null", 1, data)
		if _, err := scan(bytes.NewReader(file), render.Paths{NoKey: true}); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	})
}
