//go:build integration

package single

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/harness"
	"sequins/test/process"
)

// TestEveryFixtureOverHTTP loads everything that Hadoop and Sparkey wrote into one node and asks
// for every key, in two spellings, and for keys that are not there.
func TestEveryFixtureOverHTTP(t *testing.T) {
	for _, compression := range []string{"none", "snappy"} {
		t.Run(compression, func(t *testing.T) {
			n := process.Start(t, process.Config{
				Source: harness.FixturesDir(t), Store: filepath.Join(t.TempDir(), "store"),
				Extra: `allow_empty = true`, Sections: fmt.Sprintf("[storage]\ncompression = %q\n", compression) + fieldsOf(harness.Fixtures(t)),
			})
			for _, f := range harness.Fixtures(t) {
				t.Run(f.Name, func(t *testing.T) { checkFixture(t, n, f) })
			}
		})
	}
}

// fieldsOf configures what is key and value in the fixtures whose records have fields.
func fieldsOf(all []harness.Fixture) string {
	var b strings.Builder
	for _, f := range all {
		if f.Meta.KeyField != "" {
			fmt.Fprintf(&b, "[db.%s]\nkey = %q\nvalue = %q\n", f.Name, f.Meta.KeyField, f.Meta.ValueField)
		}
	}
	return b.String()
}

func checkFixture(t *testing.T, n *process.Node, f harness.Fixture) {
	n.WaitCurrent(t, f.Name, f.Meta.Version)
	want := f.Final(t)
	c := n.Client()
	defer c.Close()
	for key, r := range want {
		if key == "" {
			continue // /<db>/ is the status page: the empty key cannot be asked for
		}
		for _, target := range []string{process.Target(f.Name, []byte(key)), process.PlainTarget(f.Name, []byte(key))} {
			resp, err := c.Get(target)
			if err != nil {
				t.Fatalf("GET %.200s: %v", target, err)
			}
			if resp.Code != 200 || resp.Version() != f.Meta.Version || !r.HasValue(resp.Body) {
				t.Fatalf("GET %.200s: %d of version %q, %d bytes", target, resp.Code, resp.Version(), len(resp.Body))
			}
		}
		checkAbsent(t, c, f, want, key)
	}
	checkAbsent(t, c, f, want, "no such key")
}

// checkAbsent asks for neighbours of a key.
func checkAbsent(t *testing.T, c *process.Client, f harness.Fixture, want map[string]harness.Record, key string) {
	t.Helper()
	for _, k := range []string{key + "\x00", key + "x", "/" + key, key[:len(key)-1]} {
		if _, ok := want[k]; ok || k == "" {
			continue
		}
		resp, err := c.Get(process.Target(f.Name, []byte(k)))
		if err != nil || resp.Code != 404 || resp.Version() != f.Meta.Version {
			t.Fatalf("GET of absent %.100q: %+v, %v", k, resp, err)
		}
	}
}
