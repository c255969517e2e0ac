// Package versions makes versions with blocks for the tests of the packages that read them.
package versions

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/shard"
	"sequins/test/expect"
	"sequins/version"
)

// All are all partitions of a version, for Put.
func All(int) bool { return true }

// Block writes a block, in small pages, of those records that shard.String puts into partition p of n, and returns its file.
func Block(t testing.TB, p, n int, records map[string]string) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "0.block"))
	expect.NoError(t, err)
	defer f.Close()
	w, err := blocks.NewWriter(f, blocks.WriterOptions{Partition: p, Partitions: n, BlockSize: 4096})
	expect.NoError(t, err)
	for _, k := range slices.Sorted(maps.Keys(records)) {
		if shard.String.Partition([]byte(k), n) == p {
			expect.NoError(t, w.Add([]byte(k), []byte(records[k])))
		}
	}
	_, err = w.Finish()
	expect.NoError(t, err)
	return f.Name()
}

// Open writes a block as Block does, and opens it.
func Open(t testing.TB, p, n int, records map[string]string) *blocks.Reader {
	t.Helper()
	b, err := blocks.Open(Block(t, p, n, records))
	expect.NoError(t, err)
	return b
}

// Put puts a block of records into v for each partition that is held.
func Put(t testing.TB, v *version.Version, records map[string]string, held func(p int) bool) {
	t.Helper()
	for p := range v.Partitions {
		if held(p) {
			expect.NoError(t, v.Put(p, Open(t, p, v.Partitions, records)))
		}
	}
}

// Activate makes v the current version of a set. When the test ends, Close closes it.
func Activate(t testing.TB, set *version.Set, v *version.Version) {
	t.Helper()
	set.Prepare(v)
	expect.NoError(t, set.Activate(v.Input))
	t.Cleanup(func() { Close(t, set, v.Input) })
}

// Close removes a version from a set, if it is in it, and fails the test if a read holds it for a minute.
func Close(t testing.TB, set *version.Set, in content.Input) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if v := set.Remove(in); v != nil {
		if err := v.Close(ctx); err != nil {
			t.Errorf("a read holds %s: %v", in.Name, err)
		}
	}
}
