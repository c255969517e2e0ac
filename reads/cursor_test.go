package reads

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"testing"
	"time"
)

func init() { fetchPause = time.Microsecond }

// Cursors decode to what they were made of.
func TestCursorText(t *testing.T) {
	for _, c := range []cursor{
		{version: "v1", plan: 1 << 63, last: []byte{}},
		{version: "2026-01-01", last: bytes.Repeat([]byte{0xff}, maxBound-1), end: []byte("z")},
		{version: "v", last: []byte("a\x00b"), end: bytes.Repeat([]byte{1}, maxBound)},
	} {
		text := c.encode("db")
		got, err := parseCursor(text, "db")
		if err != nil || got.version != c.version || got.plan != c.plan || !bytes.Equal(got.last, c.last) || !bytes.Equal(got.end, c.end) || (got.end == nil) != (c.end == nil) {
			t.Errorf("%.100q: %.100v, %v", text, got, err)
		}
		for _, wrong := range [][]byte{text[1:], text[:len(text)-1], append(bytes.Clone(text), '='), append(bytes.Clone(text), '\n'), bytes.ToUpper(text)} {
			if _, err := parseCursor(wrong, "db"); err == nil {
				t.Errorf("%.100q is accepted", wrong)
			}
		}
		if _, err := parseCursor(text, "other"); err == nil {
			t.Error("a cursor of another db is accepted")
		}
	}
}

// FuzzCursorFields parses cursors with the right checksum. Those that are accepted are encoded to an equal one.
func FuzzCursorFields(f *testing.F) {
	first, _ := base64.RawURLEncoding.DecodeString(string((&cursor{version: "v", last: []byte("k"), end: []byte("z")}).encode("db")))
	f.Add(first[:len(first)-checksumSize])
	f.Fuzz(func(t *testing.T, body []byte) {
		b := binary.BigEndian.AppendUint64(bytes.Clone(body), cursorChecksum(body, "db"))
		c, err := parseCursor(base64.RawURLEncoding.AppendEncode(nil, b), "db")
		if err != nil {
			return
		}
		again, err := parseCursor(c.encode("db"), "db")
		if err != nil || again.version != c.version || !bytes.Equal(again.last, c.last) || !bytes.Equal(again.end, c.end) {
			t.Errorf("%v, then %v: %v", c, again, err)
		}
	})
}

// FuzzPageRequestFields parses requests. Those that are accepted are encoded to an equal one.
func FuzzPageRequestFields(f *testing.F) {
	add := func(p *PageRequest) {
		b, _ := base64.RawURLEncoding.DecodeString(string(p.encode()))
		f.Add(b)
	}
	add(&PageRequest{partitions: []int{0, 1, 7, maxPartitions - 1}, size: maxPage, limit: 10, start: []byte("a"), end: []byte("z")})
	add(&PageRequest{kind: pageCount, keysOnly: true})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePageRequest(base64.RawURLEncoding.AppendEncode(nil, b))
		if err != nil {
			return
		}
		if again, err := ParsePageRequest(p.encode()); err != nil || !bytes.Equal(again.encode(), p.encode()) {
			t.Errorf("%v, then %v: %v", p, again, err)
		}
	})
}
