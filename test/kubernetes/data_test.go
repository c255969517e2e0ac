//go:build integration

package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sequins/shard"
	"sequins/test/expect"
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
	sequencefiles.WriteParts(t, tmp, partitions, shard.String.Partition, func(add func(key, value string)) {
		for i := range keys {
			add(key(i), value(i, version))
		}
	})
	expect.NoError(t, errors.Join(os.WriteFile(filepath.Join(tmp, "_SUCCESS"), nil, 0o644), os.Rename(tmp, filepath.Join(source, db, version))))
}
