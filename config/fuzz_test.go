package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// Whatever a file says, it loads or is refused with problems that name it, each on one line; and what
// loads is valid.
func FuzzLoad(f *testing.F) {
	for _, path := range []string{examplePath, "testdata/every-old-key.conf"} {
		doc, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(doc)
	}
	f.Add([]byte("source = \"/d\"\n[db.x]\nblock_size = 512\n[[zk]]"))
	f.Add([]byte("zk = {servers = [1, {a = 2}]}\n\"\\u0000\".'x y' = 1979-05-27T07:32:00Z"))
	f.Add([]byte("[load]\nmemory = \"1e9GiB\"\n[a.b.c]\n[a]"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		c, d, err := parse("f.conf", doc, nil, nil)
		for _, w := range d.warnings {
			checkLine(t, w.Error())
		}
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Errorf("loaded, but not valid: %v", err)
			}
			return
		}
		joined, many := err.(interface{ Unwrap() []error }) //nolint:errorlint // the parts of this error itself
		errs := []error{err}
		if many {
			errs = joined.Unwrap()
		}
		for _, err := range errs {
			var p *Problem
			if !errors.As(err, &p) {
				if !strings.HasPrefix(err.Error(), "and ") {
					t.Errorf("not a problem: %v", err)
				}
				continue
			}
			checkLine(t, p.Error())
			if lines := strings.Count(string(doc), "\n") + 1; p.Line > lines {
				t.Errorf("line %d of %d: %v", p.Line, lines, p)
			}
		}
	})
}

func checkLine(t *testing.T, line string) {
	t.Helper()
	if !strings.HasPrefix(line, "f.conf:") || strings.ContainsAny(line, "\n\r\x1b") {
		t.Errorf("not one line about the file: %q", line)
	}
}
