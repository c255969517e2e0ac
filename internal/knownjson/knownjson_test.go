package knownjson

import (
	"testing"
	"time"
)

func TestReader(t *testing.T) {
	r := NewReader([]byte(`{"n":12,"s":"text","b":"AP8=","yes":true,"no":false,"at":"2026-01-02T03:04:05Z"}`))
	n, s, b := r.Number(`{"n":`), r.Text(`,"s":`), r.Base64(`,"b":`)
	yes, no, at := r.Bool(`,"yes":`), r.Bool(`,"no":`), r.Time(`,"at":`)
	r.Literal("}")
	if !r.OK || len(r.Rest) > 0 {
		t.Errorf("not read: %q", r.Rest)
	}
	if n != 12 || string(s) != "text" || string(b) != "\x00\xff" || !yes || no || !at.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Error(n, s, b, yes, no, at)
	}
}

// JSON with another layout is not read, and neither is anything after it.
func TestReaderRefuses(t *testing.T) {
	reads := map[string]func(r *Reader){
		"x":                   func(r *Reader) { r.Literal("y") },
		"01":                  func(r *Reader) { r.Number("") },
		"-1":                  func(r *Reader) { r.Number("") },
		"1234567890123456789": func(r *Reader) { r.Number("") },
		`"a\n"`:               func(r *Reader) { r.Text("") },
		`"ä"`:                 func(r *Reader) { r.Text("") },
		`"open`:               func(r *Reader) { r.Text("") },
		`"AP9="`:              func(r *Reader) { r.Base64("") },
		"yes":                 func(r *Reader) { r.Bool("") },
		`"noon"`:              func(r *Reader) { r.Time("") },
	}
	for text, read := range reads {
		r := NewReader([]byte(text))
		if read(r); r.OK {
			t.Errorf("%s is read", text)
		}
		if r.Literal(""); r.OK {
			t.Errorf("%s: the reader goes on", text)
		}
	}
}
