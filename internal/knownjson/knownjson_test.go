package knownjson

import "testing"

func TestReader(t *testing.T) {
	r := NewReader([]byte(`{"n":12,"s":"text","b":"AP8="}`))
	n, s, b := r.Number(`{"n":`), r.Text(`,"s":`), r.Base64(`,"b":`)
	r.Literal("}")
	if !r.OK || len(r.Rest) > 0 {
		t.Errorf("not read: %q", r.Rest)
	}
	if n != 12 || string(s) != "text" || string(b) != "\x00\xff" {
		t.Error(n, s, b)
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
