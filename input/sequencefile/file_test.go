package sequencefile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"regexp"
	"strconv"
	"testing"

	"sequins/test/expect"
	"sequins/test/noise"
	"sequins/test/sequencefiles"
)

// record is a key and a value as they are given to a Writer and as a Reader returns them.
type record struct{ key, value []byte }

func (r record) String() string {
	return fmt.Sprintf("%.40q: %.40q (%d bytes)", r.key, r.value, len(r.value))
}

// modes are all ways to write a file.
func modes() []sequencefiles.WriterOptions {
	all := []sequencefiles.WriterOptions{{}}
	for _, c := range []sequencefiles.Compression{sequencefiles.Record, sequencefiles.Block} {
		for _, codec := range sequencefiles.Codecs() {
			all = append(all, sequencefiles.WriterOptions{Compression: c, Codec: codec})
		}
	}
	return all
}

// modeName names options for subtests: BLOCK-SnappyCodec.
func modeName(opts sequencefiles.WriterOptions) string {
	compression := Compression(opts.Compression).String()
	if opts.Codec == "" {
		return compression
	}
	return compression + "-" + path.Ext(opts.Codec)[1:]
}

// eachMode runs a subtest for each compression mode and codec, with a constant sync marker.
func eachMode(t *testing.T, test func(t *testing.T, opts sequencefiles.WriterOptions)) {
	for _, opts := range modes() {
		opts.SyncSeed = "test"
		t.Run(modeName(opts), func(t *testing.T) { test(t, opts) })
	}
}

// writeFile returns the bytes of a file with the records.
func writeFile(tb testing.TB, opts sequencefiles.WriterOptions, records []record) []byte {
	tb.Helper()
	var out bytes.Buffer
	w, err := sequencefiles.NewWriter(&out, opts)
	expect.NoError(tb, err)
	for _, r := range records {
		expect.NoError(tb, w.Append(r.key, r.value))
	}
	expect.NoError(tb, w.Close())
	return out.Bytes()
}

// scan returns copies of all records of a Reader.
func scan(r *Reader) (records []record) {
	for r.Scan() {
		records = append(records, record{bytes.Clone(r.Key()), bytes.Clone(r.Value())})
	}
	return records
}

// readFile returns what is in a file up to its end or the first error.
func readFile(file []byte) ([]record, error) {
	r, err := NewReader(bytes.NewReader(file), "test")
	if err != nil {
		return nil, err
	}
	defer r.Close()
	records := scan(r)
	return records, r.Err()
}

// sameRecords tells where two lists differ, or returns "".
func sameRecords(got, want []record) string {
	for i := range min(len(got), len(want)) {
		if !bytes.Equal(got[i].key, want[i].key) || !bytes.Equal(got[i].value, want[i].value) {
			return fmt.Sprintf("record %d is %v, want %v", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d records, want %d", len(got), len(want))
	}
	return ""
}

// smallRecords make a file of a few hundred bytes, with keys and values of 0, 1 and more bytes.
func smallRecords() []record {
	return []record{
		{[]byte("a"), []byte("first value, first value, first value")},
		{nil, []byte("value of the empty key")},
		{[]byte("empty value"), nil},
		{[]byte("b"), []byte("x")},
		{[]byte("long"), bytes.Repeat([]byte("0123456789"), 20)},
	}
}

// manyRecords have keys and values of all lengths around those where something changes: lengths of vints, buffers,
// chunks.
func manyRecords() []record {
	rng := rand.New(rand.NewPCG(3, 4))
	var records []record
	for n := range 300 {
		records = append(records, record{noise.Bytes(rng, n%37), noise.Bytes(rng, n)})
	}
	for _, n := range []int{65534, 65535, 65536, 65537, (128 << 10) - 9, (128 << 10), (128 << 10) + 1} {
		records = append(records, record{fmt.Appendf(nil, "key %d", n), noise.Bytes(rng, n)})
	}
	return append(records, record{noise.Bytes(rng, 70_000), nil}, record{nil, nil})
}

// largeRecords have values of up to several MiB among small ones.
func largeRecords() []record {
	rng := rand.New(rand.NewPCG(5, 6))
	records := []record{{[]byte("first"), nil}}
	for _, n := range []int{218_000, 262_144, 900_001, 2<<20 + 1} {
		records = append(records, record{fmt.Appendf(nil, "key %d", n), noise.Bytes(rng, n)}, record{[]byte("x"), []byte("y")})
	}
	return append(records, record{[]byte("zeros"), make([]byte, 5<<20)}, record{[]byte("last"), []byte("z")})
}

// corruption is what the text of an ErrCorrupt says.
type corruption struct {
	Offset int64
	Reason string
}

var corruptText = regexp.MustCompile(`(?s)^test: corrupt SequenceFile at offset (\d+): (.+)$`)

// wantCorrupt checks that an error is an ErrCorrupt for the file "test" with a reason.
func wantCorrupt(t *testing.T, err error) corruption {
	t.Helper()
	if !errors.Is(err, ErrCorrupt) {
		t.Fatalf("error %v, want an ErrCorrupt", err)
	}
	found := corruptText.FindStringSubmatch(err.Error())
	if found == nil {
		t.Fatalf("incomplete error %q", err)
	}
	offset, err := strconv.ParseInt(found[1], 10, 64)
	expect.NoError(t, err)
	return corruption{offset, found[2]}
}
