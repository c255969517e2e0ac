//go:build integration

package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sequins/shard"
	"sequins/test/sequencefiles"
)

const (
	db         = "words"
	keys       = 2000
	partitions = 12
)

func key(i int) string { return fmt.Sprintf("word-%05d", i) }

func value(i int, version string) string { return version + " of " + key(i) }

// publish writes a version of the database under a temporary name and renames it, as a careful job does. File i is partition i.
func publish(t testing.TB, source, version string) {
	t.Helper()
	tmp := filepath.Join(source, db, "_"+version)
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	errs := []error{}
	for p := range partitions {
		f, err := os.Create(filepath.Join(tmp, fmt.Sprintf("part-r-%05d", p)))
		if err != nil {
			t.Fatal(err)
		}
		w, err := sequencefiles.NewWriter(f, sequencefiles.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			if shard.String.Partition([]byte(key(i)), partitions) == p {
				errs = append(errs, w.Append([]byte(key(i)), []byte(value(i, version))))
			}
		}
		errs = append(errs, w.Close(), f.Close())
	}
	errs = append(errs, os.WriteFile(filepath.Join(tmp, "_SUCCESS"), nil, 0o644), os.Rename(tmp, filepath.Join(source, db, version)))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
