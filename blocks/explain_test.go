package blocks

import (
	"bytes"
	"fmt"
	"testing"
)

// Every key lies in the page that Place names, and where no page can hold one, it says so.
func TestPlace(t *testing.T) {
	var records []record
	for i := range 1000 {
		records = append(records, record{fmt.Appendf(nil, "key-%04d", i), fmt.Appendf(nil, "%0100d", i)})
	}
	for _, c := range []Compression{None, Snappy} {
		b := buildBlock(t, records, WriterOptions{Partitions: 1, Compression: c})
		r := openBytes(t, b)
		for _, rec := range records {
			p, ok := r.Place(rec.key)
			if !ok || p.Page < 0 || p.Page >= p.Pages || p.Packed != (c == Snappy) {
				t.Fatalf("%s: %+v, %v", rec.key, p, ok)
			}
			payload, _, err := r.payload(p.Page, new(Scratch), false)
			if err != nil || !bytes.Contains(payload, rec.value) {
				t.Fatalf("%s is not in page %d: %v", rec.key, p.Page, err)
			}
			if l := int64(p.Length); p.Offset < 0 || p.Offset+l > int64(len(b)) || p.File != r.Name() {
				t.Fatalf("%s: %+v in a file of %d bytes", rec.key, p, len(b))
			}
		}
		if p, _ := r.Place([]byte("key-0999")); p.Page != p.Pages-1 || p.Pages < 2 {
			t.Errorf("the last key is in page %d of %d", p.Page, p.Pages)
		}
		if p, ok := r.Place([]byte("another prefix")); ok {
			t.Errorf("a key that no page can hold: %+v", p)
		}
	}
	if p, ok := openBytes(t, buildBlock(t, nil, WriterOptions{Partitions: 1})).Place([]byte("k")); ok {
		t.Errorf("an empty block: %+v", p)
	}
}
