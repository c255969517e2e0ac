package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/test/expect"
)

var testTime = time.Date(2026, 1, 31, 10, 0, 0, 123456789, time.UTC)

// testManifest is a plan like one that a loader makes.
func testManifest() Manifest {
	return Manifest{
		DB: "names", Version: "2026-01-31", Input: testHash,
		Format: "sequencefile", Partitions: 3, Partitioner: "hadoop", Aligned: true,
		Files: []ManifestFile{
			{Name: "part-r-00000", Size: 100, Mark: "17 1767225600000"},
			{Name: "part-r-00001/data", Size: 0, Mark: `"abc-2"`},
			{Name: "part-\xff<&>\u2028", Size: 1 << 50},
		},
		LastModified: testTime.Add(time.Hour), Created: testTime.Add(2 * time.Hour),
	}
}

func TestManifestRoundTrip(t *testing.T) {
	empty := Manifest{DB: "d", Version: "v", Input: testHash, Files: []ManifestFile{}}
	fields := testManifest()
	fields.Fields = &Fields{Key: "id", Value: "a.b"}
	for _, want := range []Manifest{testManifest(), empty, fields} {
		data, err := encodeManifest(want)
		expect.NoError(t, err)
		got, err := decodeManifest(data, "m")
		expect.NoError(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestManifestZones: times are kept to the nanosecond, in UTC whatever they came in.
func TestManifestZones(t *testing.T) {
	m := testManifest()
	m.Created = m.Created.In(time.FixedZone("x", 3600))
	data, err := encodeManifest(m)
	expect.NoError(t, err)
	got, err := decodeManifest(data, "m")
	expect.NoError(t, err)
	if got.Content() != m.Content() || !got.Created.Equal(m.Created) {
		t.Error("times changed")
	}
	if got.Created.Location() != time.UTC {
		t.Error("times are not in UTC")
	}
}

// TestManifestOfOldFormats: what a release has written, later ones read.
func TestManifestOfOldFormats(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "manifest-v5.json"))
	expect.NoError(t, err)
	got, err := decodeManifest(data, "manifest-v5.json")
	expect.NoError(t, err)
	if diff := cmp.Diff(testManifest(), got); diff != "" {
		t.Error(diff)
	}
	if now, err := encodeManifest(got); err != nil || !bytes.Equal(now, data) {
		t.Errorf("version 5 is now written differently (%v):\n%s", err, now)
	}
}

func TestContent(t *testing.T) {
	tests := []struct {
		name   string
		change func(m *Manifest)
		same   bool
	}{
		{"nothing", func(m *Manifest) {}, true},
		{"created", func(m *Manifest) { m.Created = m.Created.Add(1) }, true},
		{"zone", func(m *Manifest) { m.LastModified = m.LastModified.Local() }, true},
		{"fields, which are in the input", func(m *Manifest) { m.Fields = &Fields{Key: "k"} }, true},
		{"files, which are in the input", func(m *Manifest) { m.Files = m.Files[:2] }, true},
		{"db", func(m *Manifest) { m.DB += "x" }, true},
		{"version", func(m *Manifest) { m.Version += "x" }, false},
		{"input", func(m *Manifest) { m.Input = strings.Repeat("0", content.Digits) }, false},
		{"format", func(m *Manifest) { m.Format = "sparkey" }, false},
		{"partitions", func(m *Manifest) { m.Partitions++ }, false},
		{"partitioner", func(m *Manifest) { m.Partitioner = "spark" }, false},
		{"aligned", func(m *Manifest) { m.Aligned = false }, false},
	}
	for _, tt := range tests {
		m := testManifest()
		tt.change(&m)
		if got := m.Content() == testManifest().Content(); got != tt.same || !m.Content().Valid() {
			t.Errorf("%s: %v, the same: %v", tt.name, m.Content(), got)
		}
	}
	if got, want := testManifest().Content().Code(), testHash+".18fc907f3da651db"; got != want { // nodes of different releases compare it
		t.Errorf("%s, want %s", got, want)
	}
}

// seal puts a body into a manifest file with the right checksum.
func seal(body string) string { return string(sealed(manifestFile, body)) }

// sealed is a file with a body.
func sealed(k fileKind, body string) []byte {
	data, err := k.seal([]byte(body))
	if err != nil {
		panic(err)
	}
	return data
}

const goodBody = `{"db":"d","version":"v","input":"0123456789abcdef","format":"f","partitions":1,"partitioner":"p","aligned":false,` +
	`"last_modified":"2026-01-31T10:00:00Z","created":"2026-01-31T10:00:00Z",` +
	`"files":[{"name":"a","size":1,"mark":"m"}]}`

func TestBadManifest(t *testing.T) {
	with := func(old, new string) string {
		if !strings.Contains(goodBody, old) {
			t.Fatalf("no %s in the body", old)
		}
		return seal(strings.Replace(goodBody, old, new, 1))
	}
	tests := []struct {
		name, data, want string // want is empty for a good one
	}{
		{"good", seal(goodBody), ""},
		{"empty", "", "not a manifest"},
		{"not JSON", "hello", "not a manifest"},
		{"cut short", seal(goodBody)[:200], "not a manifest"},
		{"more behind it", seal(goodBody) + "{}", "checksum"},
		{"no format version", `{}`, "not a manifest"},
		{"format version 0", strings.Replace(seal(goodBody), `n":5`, `n":0`, 1), "format version"},
		{"newer", `{"format_version":6,"new":"things"}`, "is 6, and 5 can be read"},
		{"no body", `{"format_version":5,"crc32c":"00000000"}`, "not a manifest"},
		{"null body", seal("null"), "not a manifest"},
		{"checksum", strings.Replace(seal(goodBody), `"size":1`, `"size":2`, 1), "checksum"},
		{"unknown key outside", strings.Replace(seal(goodBody), `{`, `{"x":1,`, 1), "not a manifest"},
		{"unknown key", with(`"db"`, `"x":1,"db"`), "unknown field"},
		{"unknown key of a file", with(`"size"`, `"x":1,"size"`), "unknown field"},
		{"db", with(`"db":"d"`, `"db":"../d"`), "not a name of a db"},
		{"version", with(`"version":"v"`, `"version":".."`), "is not an input"},
		{"partitions below 0", with(`"partitions":1`, `"partitions":-1`), "-1 partitions"},
		{"partitions", with(`"partitions":1`, `"partitions":262145`), "262145 partitions"},
		{"partitions beyond an int", with(`"partitions":1`, `"partitions":1e40`), "partitions"},
		{"partitioner", with(`"p"`, `"`+strings.Repeat("p", 65)+`"`), "not a name of a partitioner"},
		{"format", with(`"f"`, `"`+strings.Repeat("f", 65)+`"`), "not a name of a format"},
		{"fields", with(`"p"`, `"p","fields":{"key":"k","value":"v"}`), ""},
		{"unknown key of the fields", with(`"p"`, `"p","fields":{"x":"k"}`), "unknown field"},
		{"name of a field", with(`"p"`, `"p","fields":{"key":"`+strings.Repeat("k", 1<<16+1)+`"}`), "more than 65536 bytes"},
		{"file without a name", with(`"name":"a"`, `"name":""`), "file 0 has a name of 0 bytes"},
		{"file name", with(`"a"`, `"`+strings.Repeat("a", 4097)+`"`), "file 0 has a name of 4097 bytes"},
		{"file size", with(`"size":1`, `"size":-1`), "the size -1"},
		{"files", with(`[{`, `{[{`), "not a manifest"},
		{"year", with(`"created":"2026-01-31T10:00:00Z"`, `"created":"0000-01-01T00:00:00+10:00"`), "the year -1"},
		{"mark", with(`"mark":"m"`, `"mark":"`+strings.Repeat("m", maxMark+1)+`"`), "file 0 has a name of 1 bytes, the size 1 and the mark"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := decodeManifest([]byte(tt.data), "the/path")
			if tt.want == "" {
				expect.NoError(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "the/path") {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if !errors.Is(err, blocks.ErrCorrupt) {
				t.Errorf("%v is not corruption", err)
			}
		})
	}
}

func TestManifestWithTooManyFiles(t *testing.T) {
	body := strings.Replace(goodBody, `[{`, `[`+strings.Repeat(`{"name":"a","size":1,"mark":""},`, maxManifestFiles)+`{`, 1)
	_, err := decodeManifest([]byte(seal(body)), "m")
	if !errors.Is(err, blocks.ErrCorrupt) || !strings.Contains(err.Error(), "262145 files") {
		t.Errorf("got %v", err)
	}
}

// TestManifestTooLong: a manifest that could not be read again is not written.
func TestManifestTooLong(t *testing.T) {
	long := testManifest()
	name := strings.Repeat("x", maxSourceFileName)
	long.Files = slices.Repeat([]ManifestFile{{Name: name}}, maxManifest/len(name)+1)
	_, err := encodeManifest(long)
	expect.Error(t, "names", err, ErrTooLarge)
	many := testManifest()
	many.Files = make([]ManifestFile, maxManifestFiles+1)
	expect.Error(t, "files", many.validate(), ErrTooLarge)
	escaped := testManifest()
	escaped.Files = []ManifestFile{{Name: strings.Repeat("<", maxManifest/len(`\u003c`)+1)}}
	_, err = encodeManifest(escaped)
	expect.Error(t, "escapes", err, ErrTooLarge)
}

// TestManifestOf100000Files: the limits leave room for the largest versions there are.
func TestManifestOf100000Files(t *testing.T) {
	m := testManifest()
	m.Files, m.Partitions = make([]ManifestFile, 100_000), 100_000
	for i := range m.Files {
		name := fmt.Sprintf("part-r-%05d-0a1b2c3d-0000-4111-8222-abcdefabcdef-c000.snappy", i)
		m.Files[i] = ManifestFile{Name: name, Size: 1 << 40, Mark: "1234567890 1767225600000"}
	}
	data, err := encodeManifest(m)
	expect.NoError(t, err)
	got, err := decodeManifest(data, "m")
	expect.NoError(t, err)
	if got.Content() != m.Content() || len(data) > maxManifest/4 {
		t.Errorf("not the same after %d bytes", len(data))
	}
}

// TestManifestFlippedBits: no flipped bit changes what a manifest says.
func TestManifestFlippedBits(t *testing.T) {
	want := testManifest()
	data, err := encodeManifest(want)
	expect.NoError(t, err)
	found := 0
	for bit := range len(data) * 8 {
		data[bit/8] ^= 1 << (bit % 8)
		if got, err := decodeManifest(data, "m"); err != nil {
			found++
		} else if !cmp.Equal(want, got) {
			t.Fatalf("bit %d flipped, and the manifest says %v", bit, got)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
	// What is left is the newline at the end, which may be missing, and so may be part of what is not read.
	if len(data)*8-found > 0 {
		t.Errorf("only %d of %d flipped bits were found", found, len(data)*8)
	}
}

func FuzzManifest(f *testing.F) {
	data, err := encodeManifest(testManifest())
	expect.NoError(f, err)
	f.Add(string(data), false)
	f.Add(seal(goodBody), false)
	f.Add(goodBody, true)
	f.Add(`{"files":[{},null,{"name":"","name_base64":"/w=="}]}`, true)
	f.Add(`{"format_version":5}`, false)
	f.Fuzz(func(t *testing.T, data string, isBody bool) {
		if isBody {
			data = seal(data)
		}
		m, err := decodeManifest([]byte(data), "m")
		if err != nil {
			if !errors.Is(err, blocks.ErrCorrupt) {
				t.Fatalf("%v is not corruption", err)
			}
			return
		}
		again, err := encodeManifest(m)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		m2, err := decodeManifest(again, "m")
		if err != nil || !cmp.Equal(m, m2) {
			t.Fatalf("%v, after a round trip %v: %v", m, m2, err)
		}
	})
}

func BenchmarkDecodeManifest(b *testing.B) {
	m := testManifest()
	m.Files = slices.Repeat([]ManifestFile{{Name: "part-r-00000", Size: 1 << 30, Mark: "1234567890 1767225600000"}}, 10_000)
	data, err := encodeManifest(m)
	expect.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeManifest(data, "m"); err != nil {
			b.Fatal(err)
		}
	}
}
