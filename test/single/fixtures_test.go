//go:build integration

package single

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

// TestEveryFixtureOverHTTP loads everything that Hadoop and others wrote into one node and asks for every key, in two
// spellings, and for keys that are not there. Another node has the blocks that sequins build makes of the same, and answers
// with the same values and headers.
func TestEveryFixtureOverHTTP(t *testing.T) {
	t.Parallel()
	from, to, fixtures := harness.FixturesDir(t), t.TempDir(), harness.Fixtures(t)
	own := process.Start(t, process.Config{Source: from, Store: filepath.Join(t.TempDir(), "store"), Sections: fieldsOf(fixtures)})
	conf := filepath.Join(t.TempDir(), "build.conf")
	expect.NoError(t, os.WriteFile(conf, []byte("source = \"/nowhere\"\n"+fieldsOf(fixtures)), 0o644))
	for _, f := range fixtures {
		version := filepath.Join(f.Name, f.Meta.Version)
		buildBlocks(t, "--config", conf, filepath.Join(from, version), filepath.Join(to, version))
	}
	built := process.Start(t, process.Config{Source: to, Store: filepath.Join(t.TempDir(), "store"), Sections: fieldsOf(fixtures)})
	for _, f := range fixtures {
		t.Run(f.Name, func(t *testing.T) {
			checkFixture(t, own, f)
			checkBuilt(t, built, own, f)
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

// checkBuilt asks a node of finished blocks for every key of a fixture, and compares headers with those of a node of the files.
func checkBuilt(t *testing.T, built, own *process.Node, f harness.Fixture) {
	built.WaitCurrent(t, f.Name, f.Meta.Version)
	b, o := built.Client(), own.Client()
	defer b.Close()
	defer o.Close()
	compared := false
	for key, want := range f.Final(t) {
		if key == "" {
			continue
		}
		target := process.Target(f.Name, []byte(key))
		r, err := b.Get(target)
		if err != nil || r.Code != 200 || !want.HasValue(r.Body) {
			t.Fatalf("GET %.200s: %+.200v, %v", target, r, err)
		}
		if compared {
			continue
		}
		compared = true
		files, err := o.Get(target)
		expect.NoError(t, err)
		for _, name := range []string{"Last-Modified", "Etag", "X-Sequins-Version", "Content-Length"} {
			if r.Header.Get(name) != files.Header.Get(name) {
				t.Errorf("%q: %s is %q from the files and %q from finished blocks", key, name, files.Header.Get(name), r.Header.Get(name))
			}
		}
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
	expect.NoError(t, err)
	for i, a := range answers {
		r := present[i]
		if a.Version() != f.Meta.Version || r == nil && a.Code != 404 || r != nil && (a.Code != 200 || !r.HasValue(a.Body)) {
			t.Fatalf("GET %.200s: %d of version %q, %d bytes", targets[i], a.Code, a.Version(), len(a.Body))
		}
	}
}
