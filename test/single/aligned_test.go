//go:build integration

package single

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sequins/shard"
)

// writeAligned writes a version whose files are cut along the string partitioner and sorted.
func writeAligned(t testing.TB, dir string, files, n int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for f := range files {
		writeSequenceFile(t, filepath.Join(dir, fmt.Sprintf("part-r-%05d", f)), func(add func(key, value string)) {
			for i := range n {
				key, value := numbered("1")(i)
				if shard.String.Partition([]byte(key), files) == f {
					add(key, value)
				}
			}
		})
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
}
