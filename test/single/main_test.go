//go:build integration

package single

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

func TestMain(m *testing.M) {
	process.Parallel(4)
	m.Run()
	process.RemoveBinary()
}

// writeVersion writes a version of files SequenceFiles under a temporary name and renames it, as
// a careful job does. record gives the i-th record of n.
func writeVersion(t testing.TB, source, db, version string, files, n int, record func(i int) (key, value string)) {
	t.Helper()
	tmp := filepath.Join(source, db, "_"+version)
	expect.NoError(t, os.MkdirAll(tmp, 0o755))
	sequencefiles.WriteParts(t, tmp, files, sequencefiles.InTurn(), func(add func(key, value string)) {
		for i := range n {
			add(record(i))
		}
	})
	expect.NoError(t, errors.Join(os.WriteFile(filepath.Join(tmp, "_SUCCESS"), nil, 0o644), os.Rename(tmp, filepath.Join(source, db, version))))
}

// numbered gives the records of a version whose values name it.
func numbered(version string) func(i int) (key, value string) {
	return func(i int) (string, string) { return fmt.Sprintf("key-%06d", i), fmt.Sprintf("%s/%d", version, i) }
}

// newNode makes a source directory and the config of a node that reads it.
func newNode(t testing.TB) (source string, c process.Config) {
	t.Helper()
	dir := t.TempDir()
	source = filepath.Join(dir, "source")
	expect.NoError(t, os.MkdirAll(source, 0o755))
	return source, process.Config{Source: source, Store: filepath.Join(dir, "store"), Extra: `refresh_period = "100ms"`}
}

// waitError waits until a version is in ERROR and returns its text.
func waitError(t testing.TB, n *process.Node, db, version string) string {
	t.Helper()
	var text string
	n.WaitFor(t, db+"/"+version+" is in ERROR", func() bool {
		v := n.Health(t)[db][version]
		text = v.Error
		if v.State == "ERROR" {
			return true
		}
		// The status is up to a second old, and what fails is tried again meanwhile: the log has it all.
		for line := range strings.Lines(n.Log()) {
			if strings.Contains(line, "db="+db+" version="+version+" ") && strings.Contains(line, "state=ERROR") {
				text = line
				return true
			}
		}
		return false
	})
	return text
}

// wantText fails unless the text holds every part.
func wantText(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q does not say %q", text, p)
		}
	}
}

// storeFiles lists the files of a store below data, relative to it.
func storeFiles(t testing.TB, store string) []string {
	t.Helper()
	var files []string
	root := filepath.Join(store, "data")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed under our eyes
		}
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(root, path)
			files = append(files, rel)
		}
		return err
	})
	expect.NoError(t, err)
	return files
}

// contentDir returns the directory of a version's content in a store; "" if there is none or more than one.
func contentDir(store, db, version string) string {
	found, err := filepath.Glob(filepath.Join(store, "data", db, version, "*"))
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0]
}

// copyFile copies a file, or the first n bytes of it if n >= 0.
func copyFile(t testing.TB, from, to string, n int) {
	t.Helper()
	b, err := os.ReadFile(from)
	expect.NoError(t, err)
	if n >= 0 {
		b = b[:n]
	}
	expect.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, 0o644)))
}
