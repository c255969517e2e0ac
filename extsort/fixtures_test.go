package extsort

import (
	"errors"
	"io"
	"path"
	"testing"

	"sequins/internal/fsys"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func write(t *testing.T, fsys fsys.FS, name, content string) {
	t.Helper()
	f, err := fsys.Create(name)
	check(t, err)
	_, err = io.WriteString(f, content)
	check(t, err)
	check(t, f.Close())
}

// list returns what is in a directory.
func list(t *testing.T, fs fsys.FS, dir string) []string {
	t.Helper()
	entries, err := fs.ReadDir(dir)
	check(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, path.Join(dir, e.Name()))
	}
	return names
}
