//go:build integration

package single

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/harness"
	"sequins/test/process"
)

// TestEveryFixtureOverHTTP loads everything that Hadoop and Sparkey wrote into one node and asks
// for every key, in two spellings, and for keys that are not there.
func TestEveryFixtureOverHTTP(t *testing.T) {
	t.Parallel()
	for _, compression := range []string{"none", "snappy"} {
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			n := process.Start(t, process.Config{
				Source: harness.FixturesDir(t), Store: filepath.Join(t.TempDir(), "store"),
				Sections: fmt.Sprintf("[storage]\ncompression = %q\n", compression) + fieldsOf(harness.Fixtures(t)),
			})
			for _, f := range harness.Fixtures(t) {
				t.Run(f.Name, func(t *testing.T) { checkFixture(t, n, f) })
			}
		})
	}
}

// fieldsOf configures what is key and value in the fixtures whose records have fields, and allows empty ones.
func fieldsOf(all []harness.Fixture) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "[db.%s]\nallow_empty = true\n", f.Name)
		if f.Meta.KeyField != "" {
			fmt.Fprintf(&b, "key = %q\nvalue = %q\n", f.Meta.KeyField, f.Meta.ValueField)
		}
	}
	return b.String()
}

func checkFixture(t *testing.T, n *process.Node, f harness.Fixture) {
	n.WaitCurrent(t, f.Name, f.Meta.Version)
	want := f.Final(t)
	c := n.Client()
	defer c.Close()
	checkAll(t, c, f, want, []string{"no such key"})
	for keys := range slices.Chunk(slices.Collect(maps.Keys(want)), 50) {
		checkAll(t, c, f, want, keys)
	}
}

// checkAll asks for keys in two spellings, and for neighbours of them, all at once.
func checkAll(t *testing.T, c *process.Client, f harness.Fixture, want map[string]harness.Record, keys []string) {
	t.Helper()
	var targets []string
	var present []*harness.Record // nil: the key of the target is absent
	for _, key := range keys {
		if r, ok := want[key]; ok && key != "" { // /<db>/ is the status page: the empty key cannot be asked for
			targets = append(targets, process.Target(f.Name, []byte(key)), process.PlainTarget(f.Name, []byte(key)))
			present = append(present, &r, &r)
		}
		for _, k := range []string{key + "\x00", key + "x", "/" + key, key[:max(0, len(key)-1)]} {
			if _, ok := want[k]; !ok && k != "" {
				targets = append(targets, process.Target(f.Name, []byte(k)))
				present = append(present, nil)
			}
		}
	}
	answers, err := c.GetAll(targets)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		r := present[i]
		if a.Version() != f.Meta.Version || r == nil && a.Code != 404 || r != nil && (a.Code != 200 || !r.HasValue(a.Body)) {
			t.Fatalf("GET %.200s: %d of version %q, %d bytes", targets[i], a.Code, a.Version(), len(a.Body))
		}
	}
}
