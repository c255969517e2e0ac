package pin_test

import (
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/version/pin"
)

func TestParse(t *testing.T) {
	f, err := pin.Parse([]byte("version = \"2026-01-30\"\nexclude = [\"2026-01-31\"]\nby = \"ana\"\nuntil = 2026-02-02T12:00:00Z\n[reasons]\n2026-01-31 = \"half\"\n"))
	expect.NoError(t, err)
	until := time.Date(2026, 2, 2, 12, 0, 0, 0, time.UTC)
	want := pin.File{Version: "2026-01-30", Exclude: []string{"2026-01-31"}, By: "ana", Until: until, Reasons: map[string]string{"2026-01-31": "half"}}
	if !f.Equal(want) {
		t.Errorf("got %+v", f)
	}
	if got := f.Pinned(until.Add(-time.Second)); got != "2026-01-30" {
		t.Errorf("before its end %q is pinned", got)
	}
	if got := f.Pinned(until); got != "" {
		t.Errorf("after its end %q is pinned", got)
	}
	if f, err := pin.Parse([]byte("\ufeffversion = \"1\"")); err != nil || f.Version != "1" {
		t.Errorf("with a byte order mark: %+v, %v", f, err)
	}
	if empty, err := pin.Parse(nil); err != nil || !empty.Equal(pin.File{}) {
		t.Errorf("an empty file is %+v, %v", empty, err)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"versio = \"1\"":                                      "line 1: unknown key versio",
		"version = 1":                                         "line 1",
		"version = \"a/b\"":                                   `"a/b" is not the name of a version`,
		"exclude = [\"_x\"]":                                  `"_x" is not the name of a version`,
		"version = \"1\"\nexclude = [\"1\"]":                  "both pinned and excluded",
		"approve = [\"1\"]\nexclude = [\"1\"]":                "both approved and excluded",
		"approve = [\"\", \"/\"]":                             `"/" is not the name of a version`,
		"version = \"1":                                       "line 1",
		"version = \"1\"\nuntil = 18:00:00":                   "until = 18:00:00 needs a date, a time and a zone",
		"version = \"1\"\nuntil = 2026-02-02T18:00:00":        "needs a date, a time and a zone",
		"version = \"1\"\nuntil = 2026-02-02":                 "needs a date, a time and a zone",
		"by = '''" + strings.Repeat("\\", 40_000) + "'x'''":   "more than the limit",
		"by = '''" + strings.Repeat("x", pin.MaxSize) + "'''": "more than the limit",
	} {
		if _, err := pin.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("version = \"1\"\nexclude = [\"2\"]\nuntil = 2026-02-02T12:00:00+01:00\n"))
	f.Add([]byte("reasons = {\"\\u0000\" = \"\\u0000\"}\nby = '\"'"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := pin.Parse(data)
		if err != nil {
			return
		}
		again, err := file.Encode()
		if err != nil {
			if len(data) < pin.MaxSize/8 {
				t.Fatalf("%+v cannot be encoded: %v", file, err)
			}
			return
		}
		if parsed, err := pin.Parse(again); err != nil || !parsed.Equal(file) {
			t.Fatalf("%+v is written as %q, read as %+v, %v", file, again, parsed, err)
		}
	})
}
