package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// manyFiles is a plan of n files.
func manyFiles(n int) Manifest {
	m := testManifest()
	m.Files = nil
	for i := range n {
		m.Files = append(m.Files, ManifestFile{Name: fmt.Sprintf("part-r-%05d", i), Size: int64(i) * 1000, Mark: strconv.Itoa(i)})
	}
	return m
}

// sameAsJSON holds a manifest that writtenManifest takes to what encoding/json makes of it.
func sameAsJSON(t *testing.T, data []byte) (taken bool) {
	t.Helper()
	got, ok := writtenManifest(data)
	if !ok {
		return false
	}
	want, err := parseManifest(data, "m")
	if err != nil {
		t.Fatalf("%q: taken, but %v", data, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%q (-want +got):\n%s", data, diff)
	}
	return true
}

// What encodeManifest writes is taken, apart from names that JSON cannot have as they are, and means the same.
func TestWrittenManifest(t *testing.T) {
	ascii := manyFiles(1000)
	fields, empty := manyFiles(3), manyFiles(0)
	fields.Fields = &Fields{Key: "ключ", Value: "a.<b>"}
	noDigits := manyFiles(2)
	noDigits.Files[1].Mark, noDigits.Files[1].Size = "", 0
	for i, m := range []Manifest{ascii, fields, empty, noDigits} {
		data, err := encodeManifest(m)
		if err != nil {
			t.Fatal(err)
		}
		if !sameAsJSON(t, data) {
			t.Errorf("manifest %d is left to encoding/json", i)
		}
	}
	data, err := encodeManifest(testManifest()) // with a name in base64
	if err != nil || sameAsJSON(t, data) {
		t.Error(err)
	}
}

// Of a damaged manifest, and of one written by another program, nothing is taken that encoding/json does not read, or
// reads otherwise.
func TestWrittenManifestChanged(t *testing.T) {
	m := manyFiles(2)
	m.Fields = &Fields{Key: "k"}
	data, err := encodeManifest(m)
	if err != nil {
		t.Fatal(err)
	}
	var env manifestEnvelope
	if err := json.Unmarshal(data, &env); err != nil {
		t.Fatal(err)
	}
	for i := range env.Manifest {
		for _, c := range []byte("\x00 \"\\{}[],:-01eZé") {
			for _, changed := range [][]byte{
				append(append(bytes.Clone(env.Manifest[:i]), c), env.Manifest[i+1:]...),
				append(append(bytes.Clone(env.Manifest[:i]), c), env.Manifest[i:]...),
				env.Manifest[:i],
			} {
				sameAsJSON(t, withChecksum(changed))
			}
		}
	}
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 1
		sameAsJSON(t, damaged)
		sameAsJSON(t, data[:i])
	}
}

// withChecksum is the file of a manifest with this body.
func withChecksum(body []byte) []byte {
	return fmt.Appendf(nil, "{\"format_version\":3,\"crc32c\":\"%s\",\"manifest\":%s}\n", checksum(body), body)
}

func FuzzWrittenManifest(f *testing.F) {
	m := manyFiles(2)
	m.Fields = &Fields{Key: "k", Value: "v"}
	for _, m := range []Manifest{m, manyFiles(0), testManifest()} {
		data, err := encodeManifest(m)
		if err != nil {
			f.Fatal(err)
		}
		var env manifestEnvelope
		if err := json.Unmarshal(data, &env); err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(env.Manifest))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sameAsJSON(t, withChecksum(body))
		sameAsJSON(t, body)
	})
}

func BenchmarkDecodeManifest(b *testing.B) {
	data, err := encodeManifest(manyFiles(10_000))
	if err != nil {
		b.Fatal(err)
	}
	for name, decode := range map[string]func([]byte, string) (Manifest, error){"written": decodeManifest, "any": parseManifest} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decode(data, "m"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
