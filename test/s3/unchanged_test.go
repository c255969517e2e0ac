//go:build integration

package s3

import (
	"fmt"
	"path/filepath"
	"testing"

	"sequins/shard"
	"sequins/test/gateway"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

// writeTenth writes a file of the keys of a partition of ten.
func writeTenth(t *testing.T, path, version string, partition int) {
	t.Helper()
	sequencefiles.WriteFile(t, path, sequencefiles.WriterOptions{SyncSeed: "seed"}, func(add func(key, value string)) {
		for i := range 500 {
			if key := fmt.Sprintf("key-%06d", i); shard.String.Partition([]byte(key), 10) == partition {
				add(key, fmt.Sprintf("%s/%d", version, i))
			}
		}
	})
}

// TestUnchanged: a version is uploaded again, with one object of ten changed, which keeps its size. Of the others, nothing is
// read to load them.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	g := gateway.Start(t)
	dir := t.TempDir()
	for p := range 10 {
		writeTenth(t, filepath.Join(dir, fmt.Sprintf("part-r-%05d", p)), "1", p)
	}
	g.PutTree(t, "jobs/output/db/1", dir)
	g.Put(t, "jobs/output/db/1/_SUCCESS", nil)
	n := process.Start(t, configure(t, g.Endpoint(), gateway.SecretKey))
	n.WaitCurrent(t, "db", "1")
	n.WaitLog(t, "files=10/10")
	writeTenth(t, filepath.Join(dir, "part-r-00004"), "2", 4)
	g.PutTree(t, "jobs/output/db/2", dir)
	g.Put(t, "jobs/output/db/2/_SUCCESS", nil)
	n.WaitCurrent(t, "db", "2")
	n.WaitLog(t, "unchanged=9/10")
	n.WaitLog(t, "files=1/1")
	for i := range 500 {
		key, want := fmt.Sprintf("key-%06d", i), fmt.Sprintf("1/%d", i)
		if shard.String.Partition([]byte(key), 10) == 4 {
			want = fmt.Sprintf("2/%d", i)
		}
		if r := n.Get(t, "/db/"+key); r.Code != 200 || string(r.Body) != want || r.Version() != "2" {
			t.Fatalf("GET %s: %d of %s: %.100q, want %q", key, r.Code, r.Version(), r.Body, want)
		}
	}
}
