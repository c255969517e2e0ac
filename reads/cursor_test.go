package reads

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"testing"
	"time"

	"sequins/internal/content"
	"sequins/test/contents"
)

func init() { fetchPause = time.Microsecond }

// Cursors decode to what they were made of.
func TestCursorText(t *testing.T) {
	for _, c := range []cursor{
		{content: contents.Of("v1"), last: []byte{}},
		{content: contents.Of("2026-01-01"), last: bytes.Repeat([]byte{0xff}, maxBound-1), end: []byte("z")},
		{content: contents.Of("v"), last: []byte("a\x00b"), end: bytes.Repeat([]byte{1}, maxBound)},
	} {
		text := c.encode("db")
		got, err := parseCursor(text, "db")
		if err != nil || got.content != c.content || !bytes.Equal(got.last, c.last) || !bytes.Equal(got.end, c.end) || (got.end == nil) != (c.end == nil) {
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

// Cursors of what no node can hold are refused.
func TestCursorContent(t *testing.T) {
	whole := contents.Of("v1")
	for _, c := range []content.Content{
		{}, {Input: whole.Input}, {Division: whole.Division},
		{Input: content.Input{Name: "a/b", Hash: whole.Hash}, Division: whole.Division},
		{Input: content.Input{Name: "v1", Hash: whole.Hash[1:]}, Division: whole.Division},
	} {
		text := (&cursor{content: c, last: []byte("k")}).encode("db")
		if got, err := parseCursor(text, "db"); err == nil {
			t.Errorf("%v is accepted as %v", c, got)
		}
	}
}

// FuzzCursorFields parses cursors with the right checksum. Those that are accepted are encoded to an equal one.
func FuzzCursorFields(f *testing.F) {
	first, _ := base64.RawURLEncoding.DecodeString(string((&cursor{content: contents.Of("v"), last: []byte("k"), end: []byte("z")}).encode("db")))
	f.Add(first[:len(first)-checksumSize])
	f.Fuzz(func(t *testing.T, body []byte) {
		b := binary.BigEndian.AppendUint64(bytes.Clone(body), cursorChecksum(body, "db"))
		c, err := parseCursor(base64.RawURLEncoding.AppendEncode(nil, b), "db")
		if err != nil {
			return
		}
		again, err := parseCursor(c.encode("db"), "db")
		if err != nil || again.content != c.content || !bytes.Equal(again.last, c.last) || !bytes.Equal(again.end, c.end) {
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
	add(&PageRequest{partitions: []int{0, 1, 7, maxPartitions - 1}, size: maxPage, limit: 10, interval: interval{[]byte("a"), []byte("z")}})
	add(&PageRequest{kind: pageSummary, keysOnly: true})
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
