package avro

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"sequins/internal/render"
	"sequins/test/expect"
)

// makeContainer returns a file of one block: count records in data, which is already compressed.
func makeContainer(schema, codec string, count int64, data []byte) []byte {
	str := func(b, s []byte) []byte { return append(binary.AppendVarint(b, int64(len(s))), s...) }
	b := []byte(Magic)
	b = binary.AppendVarint(b, 2)
	b = str(str(b, []byte("avro.schema")), []byte(schema))
	b = str(str(b, []byte("avro.codec")), []byte(codec))
	b = append(append(b, 0), "0123456789abcdef"...)
	b = binary.AppendVarint(binary.AppendVarint(b, count), int64(len(data)))
	return append(append(b, data...), "0123456789abcdef"...)
}

// varints are numbers as Avro writes them.
func varints(n ...int64) (b []byte) {
	for _, v := range n {
		b = binary.AppendVarint(b, v)
	}
	return b
}

// allocated is how many bytes scanning a file allocates, until its end or its error.
func allocated(raw []byte, paths render.Paths) (n uint64, records int, err error) {
	runtime.GC()
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	before := s[0].Value.Uint64()
	rd, err := NewReader(bytes.NewReader(raw), "file.avro", paths)
	if err == nil {
		for rd.Scan() {
			records++
		}
		err = errors.Join(rd.Err(), rd.Close())
	}
	metrics.Read(s)
	return s[0].Value.Uint64() - before, records, err
}

const one = `{"type":"record","name":"R","fields":[{"name":"k","type":"string"},{"name":"v","type":%s}]}`

// nested is a schema of a few KB with 2^n records in it, each without bytes.
func nested(n int) string {
	s := `{"type":"record","name":"E0","fields":[]}`
	for i := 1; i <= n; i++ {
		s = fmt.Sprintf(`{"type":"record","name":"E%d","fields":[{"name":"a","type":%s},{"name":"b","type":"E%d"}]}`, i, s, i-1)
	}
	return s
}

// Claims of a few bytes are errors, and claim no memory; whether the field is read, rendered or skipped.
func TestClaims(t *testing.T) {
	const huge = 1 << 60
	key := "\x02k"
	for name, test := range map[string]struct {
		schema string
		data   []byte
	}{
		"a string of 2^60 bytes":        {`"string"`, varints(huge)},
		"bytes of 200 MiB":              {`"bytes"`, varints(200 << 20)},
		"a negative length":             {`"bytes"`, varints(-1)},
		"an array of 2^60 nulls":        {`{"type":"array","items":"null"}`, varints(huge, 0)},
		"an array of 2^60 records":      {`{"type":"array","items":{"type":"record","name":"E","fields":[]}}`, varints(huge, 0)},
		"an array of 2^60 strings":      {`{"type":"array","items":"string"}`, varints(huge, 0)},
		"a negative count":              {`{"type":"array","items":"null"}`, varints(-huge, 0, 0)},
		"the least count":               {`{"type":"array","items":"null"}`, varints(-1<<63, 0, 0)},
		"a map of 2^60 entries":         {`{"type":"map","values":"null"}`, varints(huge)},
		"a fixed of 1 GiB":              {`{"type":"fixed","name":"F","size":1073741824}`, nil},
		"a record in itself":            {`{"type":"record","name":"S","fields":[{"name":"s","type":"S"}]}`, nil},
		"two records in itself":         {`{"type":"record","name":"S","fields":[{"name":"s","type":"S"},{"name":"t","type":"S"}]}`, nil},
		"a tree of arrays":              {`{"type":"record","name":"S","fields":[{"name":"s","type":{"type":"array","items":"S"}}]}`, bytes.Repeat(varints(1), 10_000)},
		"2^60 empty records by fields":  {nested(60), nil},
		"a number that goes on forever": {`"long"`, bytes.Repeat([]byte{0xff}, 100)},
	} {
		for _, value := range []string{"", "v", "k"} {
			raw := makeContainer(fmt.Sprintf(one, test.schema), "null", 1, append([]byte(key), test.data...))
			n, records, err := allocated(raw, render.Paths{Key: "k", Value: value})
			if !errors.Is(err, ErrCorrupt) || records > 0 || n > 16<<20 {
				t.Errorf("%s, value %q: %d records, %d bytes allocated, %v", name, value, records, n, err)
			}
		}
	}
}

// A block of records without bytes ends, as does a header of any length.
func TestRecordsWithoutBytes(t *testing.T) {
	schema := `{"type":"record","name":"R","fields":[{"name":"k","type":{"type":"fixed","name":"F","size":0}}]}`
	n, records, err := allocated(makeContainer(schema, "null", 1<<60, nil), render.Paths{Key: "k"})
	if !errors.Is(err, ErrCorrupt) || records > maxEmpty || n > 16<<20 {
		t.Errorf("%d records, %d bytes allocated, %v", records, n, err)
	}
	long := append([]byte(Magic), varints(1<<50, 1<<50)...)
	if n, _, err := allocated(append(long, make([]byte, 1000)...), render.Paths{Key: "k"}); !errors.Is(err, ErrCorrupt) || n > 1<<20 {
		t.Errorf("a header of 2^50 bytes: %d bytes allocated, %v", n, err)
	}
	if n, _, err := allocated(append([]byte(Magic), bytes.Repeat(varints(1, 0, 0), 4<<20)...), render.Paths{Key: "k"}); !errors.Is(err, ErrCorrupt) || n > 4*maxHeader {
		t.Errorf("a header without end: %d bytes allocated, %v", n, err)
	}
	deep := strings.Repeat(`{"type":"array","items":`, 100_000) + `"null"` + strings.Repeat("}", 100_000)
	if n, _, err := allocated(makeContainer(fmt.Sprintf(one, deep), "null", 1, nil), render.Paths{Key: "k"}); !errors.Is(err, ErrCorrupt) || n > 64<<20 {
		t.Errorf("a deep schema: %d bytes allocated, %v", n, err)
	}
}

// bomb is head and zeros behind it, packed by a codec.
func bomb(t *testing.T, codec string, head []byte, size int) []byte {
	t.Helper()
	plain := make([]byte, size)
	copy(plain, head)
	if codec == "zstandard" {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		expect.NoError(t, err)
		return e.EncodeAll(plain, nil)
	}
	var deflated bytes.Buffer
	z, err := flate.NewWriter(&deflated, 1)
	expect.NoError(t, err)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	expect.NoError(t, z.Close())
	return deflated.Bytes()
}

// Data that is more than MaxValue as JSON is an error, and memory is bounded by MaxValue, not by the data. Small elements and entries
// take no more memory than their text.
func TestBombs(t *testing.T) {
	const many, few = 1 << 20, 300 << 10
	long := `{"type":"enum","name":"E","symbols":["` + strings.Repeat("x", 1000) + `"]}`
	for name, test := range map[string]struct {
		codec  string
		schema string
		head   []byte
		size   int
		text   int // bytes of the value; 0 if it is too large
	}{
		"bytes":         {"zstandard", `"bytes"`, varints(200 << 20), 201 << 20, 0}, // which are more in base64
		"long elements": {"deflate", `{"type":"array","items":` + long + `}`, varints(few), few + 10, 0},
		"long entries":  {"deflate", `{"type":"map","values":` + long + `}`, varints(few), 2*few + 10, 0},
		"tiny elements": {"deflate", `{"type":"array","items":["null",{"type":"record","name":"E","fields":[]}]}`, varints(many), many + len("\x02k1234\x00"), many * len("null,")},
		"tiny entries":  {"deflate", `{"type":"map","values":"long"}`, varints(many), 2*many + len("\x02k1234\x00"), many * len(`"":0,`)},
	} {
		packed := bomb(t, test.codec, append([]byte("\x02k"), test.head...), test.size)
		raw := makeContainer(fmt.Sprintf(one, test.schema), test.codec, 1, packed)
		n, records, err := allocated(raw, render.Paths{Key: "k"})
		if fits := test.text > 0; fits && (records != 1 || err != nil) || !fits && (records > 0 || !errors.Is(err, ErrCorrupt)) {
			t.Errorf("%s: %d records, %v", name, records, err)
		}
		if n > uint64(8*cmp.Or(test.text, MaxValue)+3*len(packed)) {
			t.Errorf("%s: %d MiB allocated of %d KiB", name, n>>20, len(raw)>>10)
		}
		if n, _, _ := allocated(raw, render.Paths{Key: "k", Value: "k"}); n > 16<<20+uint64(4*test.size+3*len(packed)) {
			t.Errorf("%s, skipped: %d MiB allocated", name, n>>20)
		}
	}
}

// Entries of maps are in the order of the file, each as often as it is there.
func TestMapNames(t *testing.T) {
	str := func(s string) string { return string(varints(int64(len(s)))) + s }
	data := str("k") + string(varints(5)) + str("a!") + "\x02" + str("b\"") + "\x04" + str("a") + "\x06" + str("\xff") + "\x08" + str("a!") + "\x0a" + "\x00"
	got, err := scan(bytes.NewReader(makeContainer(fmt.Sprintf(one, `{"type":"map","values":"long"}`), "null", 1, []byte(data))), render.Paths{Key: "k", Value: "v"})
	if want := `k={"a!":1,"b\"":2,"a":3,"` + "\ufffd" + `":4,"a!":5}`; err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%q, %v, want %s", got, err, want)
	}
}
