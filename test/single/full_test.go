//go:build integration

package single

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// fill fills the disk on which a file will be, to the last byte.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	expect.NoError(t, err)
	for size := 1 << 20; size > 0; {
		switch n, err := f.Write(make([]byte, size)); {
		case errors.Is(err, syscall.ENOSPC):
			if n == 0 {
				size /= 2
			}
		case err != nil:
			t.Fatal(err)
		}
	}
	expect.NoError(t, f.Close())
}

// TestDiskFullThenDeleteAndRollback fills the disk of a node to the last byte. A rollback by _PIN takes effect all the same, also across a
// restart, and what keep_versions no longer keeps is deleted. Then there is room for the next version.
func TestDiskFullThenDeleteAndRollback(t *testing.T) {
	t.Parallel()
	const keys = 2000
	source, c := newNode(t)
	mountTmpfs(t, c.Store, "32m")
	c.Extra += "\nkeep_versions = 3\n"
	c.Sections = "[load]\ncheck_disk = false\n[storage]\ncompression = \"none\"\n"
	n := process.Start(t, c)
	for v := 1; v <= 3; v++ {
		version := fmt.Sprint(v)
		writeVersion(t, source, "db", version, 2, keys, big(version))
		n.WaitCurrent(t, "db", version)
	}
	stored := func(version string) bool { return contentDir(c.Store, "db", version) != "" }
	for v := 1; v <= 3; v++ {
		if !stored(fmt.Sprint(v)) {
			t.Fatalf("version %d is not kept: this shows nothing", v)
		}
	}
	serves := func(version string) {
		t.Helper()
		client := n.Client()
		defer client.Close()
		for i := range keys {
			key, value := big(version)(i)
			if r, err := client.Get("/db/" + key); err != nil || r.Code != 200 || r.Version() != version || string(r.Body) != value {
				t.Fatalf("GET %s: %v, %+.100v, want it of version %s", key, err, r, version)
			}
		}
	}
	fill(t, filepath.Join(c.Store, "ballast"))
	writePin(t, source, `exclude = ["3"]`)
	n.WaitCurrent(t, "db", "2")
	serves("2")
	n.Kill()
	n.WaitExit(t)
	n = process.Serve(t, c, "db", "2")
	serves("2")

	conf, err := os.ReadFile(n.Conf)
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(n.Conf, []byte(strings.Replace(string(conf), "keep_versions = 3", "keep_versions = 1", 1)), 0o644))
	n.Signal(t, syscall.SIGHUP)
	n.WaitFor(t, "version 1 is deleted", func() bool { return !stored("1") })
	serves("2")
	writeVersion(t, source, "db", "4", 2, keys/4, big("4"))
	n.WaitCurrent(t, "db", "4")
	n.Expect(t, "/db/key-000042", 200, "4", "")
}

// writePin writes the file _PIN of the db, as one step.
func writePin(t *testing.T, source, text string) {
	t.Helper()
	path := filepath.Join(source, "db", "_PIN")
	err := os.WriteFile(path+".tmp", []byte(text), 0o644)
	if err = errors.Join(err, os.Rename(path+".tmp", path)); err != nil {
		t.Fatal(err)
	}
}
