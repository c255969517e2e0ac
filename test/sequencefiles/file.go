package sequencefiles

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// WriteFile writes a file, and its directory if there is none, with the records that are added.
func WriteFile(t testing.TB, path string, opts WriterOptions, records func(add func(key, value string))) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := NewWriter(f, opts)
	if err != nil {
		t.Fatal(err)
	}
	records(func(key, value string) { err = errors.Join(err, w.Append([]byte(key), []byte(value))) })
	if err := errors.Join(err, w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
