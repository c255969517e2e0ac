package sequencefiles

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sequins/test/expect"
)

// WriteFile writes a file, and its directory if there is none, with the records that are added.
func WriteFile(t testing.TB, path string, opts WriterOptions, records func(add func(key, value string))) {
	t.Helper()
	expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	f, err := os.Create(path)
	expect.NoError(t, err)
	defer f.Close()
	w, err := NewWriter(f, opts)
	expect.NoError(t, err)
	records(func(key, value string) { err = errors.Join(err, w.Append([]byte(key), []byte(value))) })
	expect.NoError(t, errors.Join(err, w.Close(), f.Close()))
}
