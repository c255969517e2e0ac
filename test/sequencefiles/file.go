package sequencefiles

import (
	"errors"
	"fmt"
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

// WriteParts writes the files of a job, part-r-00000 and so on, into a directory. by chooses the file of each key. The same records make
// the same files.
func WriteParts(t testing.TB, dir string, files int, by func(key []byte, files int) int, records func(add func(key, value string))) {
	t.Helper()
	parts := make([][][2]string, files)
	records(func(key, value string) {
		i := by([]byte(key), files)
		parts[i] = append(parts[i], [2]string{key, value})
	})
	for i, part := range parts {
		WriteFile(t, filepath.Join(dir, fmt.Sprintf("part-r-%05d", i)), WriterOptions{SyncSeed: "seed"}, func(add func(key, value string)) {
			for _, record := range part {
				add(record[0], record[1])
			}
		})
	}
}

// InTurn returns a function for WriteParts that gives each file a record in turn.
func InTurn() func(key []byte, files int) int {
	n := -1
	return func(_ []byte, files int) int {
		n++
		return n % files
	}
}
