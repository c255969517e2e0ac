package blocks

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzParseWritten compares parseWritten with encoding/json.
func FuzzParseWritten(f *testing.F) {
	p := Properties{Partition: 3, Partitions: 8, Records: 100, RawBytes: 1 << 40, Pages: 7, FirstKey: []byte("a"), LastKey: []byte{0, 255},
		Compression: "snappy", BlockSize: 4096, ContentHash: "0123456789abcdef"}
	b, err := p.encode()
	if err != nil {
		f.Fatal(err)
	}
	if got, ok := parseWritten(b); !ok || !reflect.DeepEqual(got, p) {
		f.Fatalf("%s: %v, %+v", b, ok, got)
	}
	f.Add(b)
	p.FirstKey, p.Compression = []byte{}, `"<`
	b, _ = p.encode()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := parseWritten(b)
		if !ok {
			return
		}
		var want Properties
		if err := json.Unmarshal(b, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %+v, want %+v, %v", b, got, want, err)
		}
	})
}
