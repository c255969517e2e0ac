//go:build integration

package hdfs

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"testing"

	lib "github.com/colinmarc/hdfs/v2"

	"sequins/shard"
	"sequins/source"
	"sequins/test/expect"
	"sequins/test/noise"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

// testChecksums: the checksum of a file is that of its content, whatever its name, as long as the file is the listed one.
func testChecksums(t *testing.T, c *cluster) {
	d := c.newDir()
	const block = 1 << 20
	contents := map[string][]byte{
		"a": noise.Random(1, 100_000), "b": noise.Random(1, 100_000), "c": noise.Random(2, 100_000), "empty": nil, "one": {1},
		"large": noise.Random(3, 5*block+17), "copy": noise.Random(3, 5*block+17), "other": append(noise.Random(3, 5*block+16), 'x'),
	}
	for name, data := range contents {
		putBlocks(t, c, d.root+"/db/1/"+name, data, block)
	}
	src := c.open(t, d.root, nil)
	listed, err := src.Contents(t.Context(), "db", "1")
	expect.NoError(t, err)
	sums := map[string]string{}
	for _, f := range listed.Files {
		if sums[f.Name], err = src.Checksum(t.Context(), "db", "1", f); err != nil || sums[f.Name] == "" {
			t.Errorf("%s: %q, %v", f.Name, sums[f.Name], err)
		}
	}
	for a := range contents {
		for b := range contents {
			if same := bytes.Equal(contents[a], contents[b]); same != (sums[a] == sums[b]) {
				t.Errorf("%s has %s, and %s has %s", a, sums[a], b, sums[b])
			}
		}
	}
	d.Put(t, "db/1/a", noise.Random(1, 100_000))
	if sum, err := src.Checksum(t.Context(), "db", "1", listed.Files[0]); sum != "" || err == nil {
		t.Errorf("of a file that was replaced: %q, %v", sum, err)
	} else {
		says(t, err, source.ErrChanged.Error(), "a")
	}
}

// putBlocks writes a file of blocks of a size.
func putBlocks(t *testing.T, c *cluster, name string, data []byte, size int64) {
	t.Helper()
	expect.NoError(t, c.writer.MkdirAll(path.Dir(name), 0o755))
	f, err := c.writer.CreateFile(name, 2, size, 0o644)
	expect.NoError(t, err)
	for piece := range slices.Chunk(data, 1<<16) { // in one go, the library writes packets that the datanode finds too long
		if _, err := f.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	process.Eventually(t, name+" is closed", func() bool { return !lib.IsErrReplicating(f.Close()) })
}

// cutFile returns a file of the keys of a partition of ten.
func cutFile(t *testing.T, version string, partition int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := sequencefiles.NewWriter(&b, sequencefiles.WriterOptions{SyncSeed: "seed"})
	expect.NoError(t, err)
	for i := range 500 {
		if key := fmt.Sprintf("key-%06d", i); shard.String.Partition([]byte(key), 10) == partition {
			expect.NoError(t, w.Append([]byte(key), fmt.Appendf(nil, "%s/%d", version, i)))
		}
	}
	expect.NoError(t, w.Close())
	return b.Bytes()
}

// testUnchanged: one file of ten has changed, which keeps its size. The others are not read.
func testUnchanged(t *testing.T, c *cluster) {
	d := c.newDir()
	for version, changed := range []int{-1, 4} {
		for p := range 10 {
			of := "1"
			if p == changed {
				of = "2"
			}
			d.Put(t, fmt.Sprintf("db/%d/part-r-%05d", version+1, p), cutFile(t, of, p))
		}
	}
	d.Put(t, "db/1/_SUCCESS", nil)
	n := process.Serve(t, configure(t, "hdfs://"+c.namenode+d.root, ""), "db", "1")
	n.WaitLog(t, "files=10/10")
	d.Put(t, "db/2/_SUCCESS", nil)
	n.WaitCurrent(t, "db", "2")
	n.WaitLog(t, "unchanged=9/10")
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
