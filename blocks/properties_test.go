package blocks

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// MaxValue is the size of the largest value.
func TestMaxValue(t *testing.T) {
	for name, test := range map[string]struct {
		sizes []int // of values
		want  int64
	}{
		"none":  {nil, 0},
		"empty": {[]int{0, 0}, 0},
		"first": {[]int{9, 3, 4}, 9},
		"last":  {[]int{3, 4, 9}, 9},
		"large": {[]int{3, LargeValue + 5, 4}, LargeValue + 5},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w, err := NewWriter(&b, WriterOptions{Partitions: 1})
			if err != nil {
				t.Fatal(err)
			}
			for i, size := range test.sizes {
				if err := w.Add([]byte{'a' + byte(i)}, make([]byte, size)); err != nil {
					t.Fatal(err)
				}
			}
			p, err := w.Finish()
			if err != nil || p.MaxValue != test.want {
				t.Fatalf("%+v, %v; want %d", p, err, test.want)
			}
			r := openBytes(t, b.Bytes())
			if err := r.Verify(t.Context()); err != nil || r.Properties().MaxValue != test.want {
				t.Errorf("%+v, %v", r.Properties(), err)
			}
		})
	}
}

// FuzzParseWritten compares parseWritten with encoding/json.
func FuzzParseWritten(f *testing.F) {
	p := Properties{Partition: 3, Partitions: 8, Records: 100, RawBytes: 1 << 40, Pages: 7, FirstKey: []byte("a"), LastKey: []byte{0, 255},
		Compression: "snappy", BlockSize: 4096, ContentHash: "0123456789abcdef"}
	b, err := json.Marshal(p)
	if err != nil {
		f.Fatal(err)
	}
	if got, ok := parseWritten(b); !ok || !reflect.DeepEqual(got, p) {
		f.Fatalf("%s: %v, %+v", b, ok, got)
	}
	f.Add(b)
	p.MaxValue = 77
	b, _ = json.Marshal(p)
	if got, ok := parseWritten(b); !ok || got.MaxValue != 77 {
		f.Fatalf("%s: %v, %+v", b, ok, got)
	}
	f.Add(b)
	p.MadeFrom = "0123456789abcdef"
	b, _ = json.Marshal(p)
	if got, ok := parseWritten(b); !ok || !reflect.DeepEqual(got, p) {
		f.Fatalf("%s: %v, %+v", b, ok, got)
	}
	f.Add(b)
	p.FirstKey, p.Compression = []byte{}, `"<`
	b, _ = json.Marshal(p)
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
