package sequencefile

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"sequins/internal/unpack"
)

// TestGzipHeaders reads members with everything that may stand in a header, and cut at every byte.
func TestGzipHeaders(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra = "name", "comment", []byte("extra")
	w.Write([]byte("hello"))
	w.Close()
	src := b.Bytes()
	d := unpack.Gzip()
	if got, err := decodeAll(d, src); string(got) != "hello" || err != nil {
		t.Fatalf("%q, error %v", got, err)
	}
	for n := 1; n < len(src); n++ {
		if got, err := decodeAll(d, src[:n]); err != io.ErrUnexpectedEOF {
			t.Errorf("cut at %d of %d: %q, error %v", n, len(src), got, err)
		}
	}
	// The library writes no checksum of the header; this is the one of "1f8b0802" and six zeros.
	header := "\x1f\x8b\x08\x02\x00\x00\x00\x00\x00\x00"
	body := encodeAll(t, GzipCodec, []byte("hello"))[10:]
	if got, err := decodeAll(d, append([]byte(header+"\x1d\x26"), body...)); string(got) != "hello" || err != nil {
		t.Errorf("with a checksum of the header: %q, error %v", got, err)
	}
	if got, err := decodeAll(d, append([]byte(header+"\x1d\x27"), body...)); err == nil {
		t.Errorf("with a bad checksum of the header: %q, error %v", got, err)
	}
	for _, bad := range []string{"\x1e\x8b\x08\x00", "\x1f\x8c\x08\x00", "\x1f\x8b\x07\x00", "\x1f\x8b\x08\x20", "\x1f\x8b\x08\x80"} {
		if got, err := decodeAll(d, append([]byte(bad+"\x00\x00\x00\x00\x00\x00"), body...)); err == nil {
			t.Errorf("header %x: %q, error %v", bad, got, err)
		}
	}
}

func TestZlibHeaders(t *testing.T) {
	body := encodeAll(t, DefaultCodec, []byte("hello"))[2:]
	for header, good := range map[string]bool{
		"\x78\x9c": true, "\x08\x1d": true, "\x78\x9d": false, "\x77\x85": false,
		"\x88\x1c": false, "\x78\x20": false, // which asks for a dictionary
	} {
		if got, err := decodeAll(unpack.Zlib(), append([]byte(header), body...)); (err == nil) != good {
			t.Errorf("%x: %q, error %v", header, got, err)
		}
	}
}
