//go:build integration

package single

import (
	"fmt"
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
	for f := range files {
		sequencefiles.WriteFile(t, filepath.Join(dir, fmt.Sprintf("part-r-%05d", f)), sequencefiles.WriterOptions{}, func(add func(key, value string)) {
			for i := range n {
				key, value := numbered("1")(i)
				if shard.String.Partition([]byte(key), files) == f {
					add(key, value)
				}
			}
		})
	}
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644))
}
