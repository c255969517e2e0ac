//go:build integration

package s3

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sequins/test/gateway"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

// TestBuild builds finished blocks of a version in the bucket and puts them there, the manifest and _SUCCESS first. A node serves them. Package
// test/copies has copies by the tool of AWS.
func TestBuild(t *testing.T) {
	t.Parallel()
	g := gateway.Start(t)
	n := process.Start(t, configure(t, g.Endpoint(), gateway.SecretKey))
	upload(t, g, "raw", "2", 3, 2000)
	buildInto(t, g, n.Conf, "s3://"+gateway.Bucket+"/jobs/output/raw/2", "db/2")
	n.WaitCurrent(t, "db", "2")
	expect(t, n, "db", "2", "2", 2000)
}

// buildInto builds a version and puts it into the bucket.
func buildInto(t *testing.T, g *gateway.Gateway, conf, from, to string) {
	t.Helper()
	built := filepath.Join(t.TempDir(), filepath.FromSlash(to))
	if out, err := exec.Command(process.Binary(t), "build", "--config", conf, from, built).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.PutTree(t, "jobs/output/"+to, built)
}

// writeLarge writes a version of one file of 4 MiB of noise.
func writeLarge(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "large", "1")
	sequencefiles.WriteFile(t, filepath.Join(dir, "part-00000"), sequencefiles.WriterOptions{}, func(add func(key, value string)) {
		value, rng := make([]byte, 1<<20), rand.NewChaCha8([32]byte{})
		for i := range 4 {
			_, _ = rng.Read(value)
			add(fmt.Sprintf("key-%02d", i), string(value))
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}
