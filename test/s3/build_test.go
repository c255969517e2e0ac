//go:build integration

package s3

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sequins/input/sequencefile"
	"sequins/test/gateway"
	"sequins/test/process"
)

// buildInto builds version 1 of a directory into a prefix of the bucket, and returns what it says.
func buildInto(t *testing.T, conf, from, to string, flags ...string) (string, error) {
	t.Helper()
	args := append([]string{"build", "--config", conf}, flags...)
	out, err := exec.Command(process.Binary(t), append(args, from, "s3://"+gateway.Bucket+"/jobs/output/"+to)...).CombinedOutput()
	return string(out), err
}

// TestBuild builds finished blocks from a directory and from the bucket into the bucket, one of which is large enough for an
// upload in parts. A node serves what was built. A target that has data is refused.
func TestBuild(t *testing.T) {
	g := gateway.Start(t)
	c := configure(t, g.Endpoint(), gateway.SecretKey)
	n := process.Start(t, c)
	from := filepath.Join(t.TempDir(), "db", "1")
	if err := os.MkdirAll(from, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		writeFile(t, filepath.Join(from, fmt.Sprintf("part-r-%05d", i)), "1", i, 3, 2000)
	}
	if out, err := buildInto(t, n.Conf, from, "db/1"); err == nil {
		t.Fatalf("built without _SUCCESS: %s", out)
	}
	writeMarker(t, from)
	if out, err := buildInto(t, n.Conf, from, "db/1"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n.WaitCurrent(t, "db", "1")
	expect(t, n, "db", "1", "1", 2000)
	if out, err := buildInto(t, n.Conf, from, "db/1", "--force"); err == nil {
		t.Errorf("a finished version was replaced: %s", out)
	}
	upload(t, g, "raw", "2", 3, 2000)
	if out, err := buildInto(t, n.Conf, "s3://"+gateway.Bucket+"/jobs/output/raw/2", "db/2"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n.WaitCurrent(t, "db", "2")
	expect(t, n, "db", "2", "2", 2000)
	g.Put(t, "jobs/output/large/1/part-00000.block", []byte("of a build that was killed"))
	if out, err := buildInto(t, n.Conf, writeLarge(t), "large/1"); err == nil {
		t.Errorf("an unfinished version was replaced without --force: %s", out)
	}
	if out, err := buildInto(t, n.Conf, writeLarge(t), "large/1", "--force"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n.WaitCurrent(t, "large", "1")
	if r := n.Get(t, "/large/key-19"); r.Code != 200 || len(r.Body) != 1<<20 {
		t.Errorf("%d with %d bytes", r.Code, len(r.Body))
	}
}

func writeMarker(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeLarge writes a version of one file of 20 MiB of noise.
func writeLarge(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "large", "1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "part-00000"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := sequencefile.NewWriter(f, sequencefile.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	value, rng := make([]byte, 1<<20), rand.NewChaCha8([32]byte{})
	for i := range 20 {
		_, _ = rng.Read(value)
		if err := w.Append(fmt.Appendf(nil, "key-%02d", i), value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	writeMarker(t, dir)
	return dir
}
