package http1

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestParameters(t *testing.T) {
	tests := []struct{ query, want string }{
		{"", ""},
		{"&&", ""},
		{"a", "a"},
		{"a=", "a="},
		{"a=b&a=c", "a=b a=c"},
		{"a=b=c;d", "a=b=c;d"},
		{"%61%3D=%26%2B+", "a==&+_"},
		{"a+b=+", "a_b=_"},
		{"%zz=1&a=%&b=2", "%zz! a! b=2"},
		{"\xff=%FF\x00", "\xff=\xff\x00"},
	}
	for _, test := range tests {
		var all []string
		for p, err := range Parameters([]byte(test.query)) {
			text := string(p.Name)
			switch {
			case errors.Is(err, ErrEscape):
				text += "!"
			case p.Valued:
				text += "=" + string(p.Value)
			}
			all = append(all, strings.ReplaceAll(text, " ", "_"))
		}
		if got := strings.Join(all, " "); got != test.want {
			t.Errorf("%q: %q, want %q", test.query, got, test.want)
		}
	}
}

// FuzzParameters holds Parameters against net/url, which refuses semicolons and ignores what is malformed.
func FuzzParameters(f *testing.F) {
	for _, s := range []string{"a=b+c&d=%2B", "%70roxy=x&proxy=y", "a&&=b&=", "%zz=1&b=%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if strings.Contains(query, ";") {
			return
		}
		want, _ := url.ParseQuery(query)
		got := url.Values{}
		for p, err := range Parameters([]byte(query)) {
			if err == nil {
				got.Add(string(p.Name), string(p.Value))
			}
		}
		if got.Encode() != want.Encode() {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	})
}
