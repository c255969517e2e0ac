//go:build integration

package single

import (
	"os"
	"path/filepath"
	"testing"

	"sequins/shard"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// writeAligned writes a version whose files are cut along the string partitioner and sorted.
func writeAligned(t testing.TB, dir string, files, n int) {
	t.Helper()
	sequencefiles.WriteParts(t, dir, files, shard.String.Partition, func(add func(key, value string)) {
		for i := range n {
			add(numbered("1")(i))
		}
	})
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644))
}
