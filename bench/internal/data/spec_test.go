package data

import (
	"bytes"
	"testing"

	"sequins/blocks"
	"sequins/test/expect"
)

// Values must shrink in a block's pages as those of the design did: bytes per record of 116.
func TestCompressible(t *testing.T) {
	tests := []struct {
		codec    blocks.Compression
		min, max float64
	}{
		{blocks.None, 119, 123},
		{blocks.FSST, 74, 81},
		{blocks.Zstd, 61, 71},
	}
	s := Spec{Records: 100_000, ValueSize: 100, Keys: "hex"}
	for _, test := range tests {
		var n counter
		w, err := blocks.NewWriter(&n, blocks.WriterOptions{Compression: test.codec})
		expect.NoError(t, err)
		expect.NoError(t, s.Each(w.Add))
		if _, err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		perRecord := float64(n) / float64(s.Records)
		if perRecord -= 9.0 / 8; perRecord < test.min || perRecord > test.max {
			t.Errorf("%v: %.1f bytes per record, want %v to %v", test.codec, perRecord, test.min, test.max)
		}
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func TestRecords(t *testing.T) {
	for _, s := range []Spec{{5000, 100, "hex"}, {5000, 4096, "user"}} {
		expect.NoError(t, s.Check())
		keys := map[string]bool{}
		var last []byte
		if err := s.Each(func(key, value []byte) error {
			if bytes.Compare(last, key) >= 0 {
				t.Fatalf("%v: %s follows %s", s, key, last)
			}
			if len(key)+len(value) != s.RecordSize() {
				t.Fatalf("%v: record of %d bytes, want %d", s, len(key)+len(value), s.RecordSize())
			}
			last = bytes.Clone(key)
			keys[string(key)] = true
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for i := range s.Records {
			if !keys[string(s.Key(nil, i))] || keys[string(s.Absent(nil, i))] {
				t.Fatalf("%v: key %d", s, i)
			}
		}
	}
}
