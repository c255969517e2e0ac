//go:build integration

package s3

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sequins/input/sequencefile"
	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/harness"
	"sequins/test/process"
)

// TestJob uploads the output of a MapReduce job, and a running node finds and serves every record
// of it.
func TestJob(t *testing.T) {
	t.Parallel()
	const records, reducers = 5000, 3
	g := gateway.Start(t)
	upload(t, g, "before", "1", 1, 10)
	n := process.Serve(t, configure(t, g.Endpoint(), gateway.SecretKey), "before", "1")

	out := filepath.Join(t.TempDir(), "1")
	harness.Start(t).Do(t, fmt.Sprintf("job out=file://%s format=seq type=text compression=BLOCK codec=SnappyCodec records=%d reducers=%d tag=v",
		out, records, reducers))
	removeHidden(t, out)
	g.PutTree(t, "jobs/output/db/1", out)
	g.Put(t, "jobs/output/db/1/_SUCCESS", nil)
	n.WaitCurrent(t, "db", "1")

	found := 0
	for p := range reducers {
		found += compare(t, n, filepath.Join(out, fmt.Sprintf("part-r-%05d", p)))
	}
	if found != records {
		t.Errorf("the job wrote %d records, want %d", found, records)
	}
}

// removeHidden removes the files that are not data: checksums of the local file system, and
// _SUCCESS, which must be uploaded last.
func removeHidden(t *testing.T, dir string) {
	t.Helper()
	for _, pattern := range []string{".*", "_*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		expect.NoError(t, err)
		for _, name := range names {
			expect.NoError(t, os.RemoveAll(name))
		}
	}
}

// compare asks a node for every record of a file, and returns how many there
// are.
func compare(t *testing.T, n *process.Node, path string) (records int) {
	t.Helper()
	f, err := os.Open(path)
	expect.NoError(t, err)
	defer f.Close()
	r, err := sequencefile.NewReader(f, path)
	expect.NoError(t, err)
	defer r.Close()
	c := n.Client()
	defer c.Close()
	for ; r.Scan(); records++ {
		answer, err := c.Get("/db/" + string(r.Key()))
		expect.NoError(t, err)
		if answer.Code != 200 || string(answer.Body) != string(r.Value()) {
			t.Fatalf("%s: %d %.100q, want %.100q", r.Key(), answer.Code, answer.Body, r.Value())
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return records
}
