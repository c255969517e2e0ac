//go:build integration

package s3

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/gateway"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

func TestMain(m *testing.M) {
	process.Parallel(4)
	m.Run()
	process.RemoveBinary()
}

// configure describes a node whose source is a prefix of the gateway's bucket.
func configure(t testing.TB, endpoint, secret string) process.Config {
	t.Helper()
	return process.Config{
		Source: "s3://" + gateway.Bucket + "/jobs/output",
		Store:  filepath.Join(t.TempDir(), "store"),
		Extra:  "refresh_period = \"100ms\"\nrequire_success_file = true",
		Sections: fmt.Sprintf("[s3]\nregion = %q\nendpoint = %q\npath_style = true\naccess_key_id = %q\nsecret_access_key = %q\n",
			gateway.Region, endpoint, gateway.AccessKey, secret),
	}
}

// upload writes a version of files SequenceFiles with n records, whose values
// name it, and uploads it with _SUCCESS last, as a job does.
func upload(t testing.TB, g *gateway.Gateway, db, version string, files, n int) {
	t.Helper()
	dir := t.TempDir()
	for i := range files {
		writeFile(t, filepath.Join(dir, fmt.Sprintf("part-r-%05d", i)), version, i, files, n)
	}
	prefix := "jobs/output/" + db + "/" + version
	g.PutTree(t, prefix, dir)
	g.Put(t, prefix+"/_SUCCESS", nil)
}

func writeFile(t testing.TB, path, version string, first, step, n int) {
	t.Helper()
	sequencefiles.WriteFile(t, path, sequencefiles.WriterOptions{}, func(add func(key, value string)) {
		for i := first; i < n; i += step {
			add(fmt.Sprintf("key-%06d", i), fmt.Sprintf("%s/%d", version, i))
		}
	})
}

// expect asks for every seventh key of a version, or for some 300.
func expect(t testing.TB, n *process.Node, db, version, values string, records int) {
	t.Helper()
	for i := 0; i < records; i += max(7, records/300) {
		target := fmt.Sprintf("/%s/key-%06d", db, i)
		r := n.Get(t, target)
		if want := fmt.Sprintf("%s/%d", values, i); r.Code != 200 || r.Version() != version || string(r.Body) != want {
			t.Fatalf("GET %s: %d of %q: %.100q, want %q", target, r.Code, r.Version(), r.Body, want)
		}
	}
}

// TestUpload uploads versions to a bucket that a node looks at: the last is a
// link to the first.
func TestUpload(t *testing.T) {
	t.Parallel()
	g := gateway.Start(t)
	upload(t, g, "db", "1", 3, 2000)
	n := process.Start(t, configure(t, g.Endpoint(), gateway.SecretKey))
	n.WaitCurrent(t, "db", "1")
	expect(t, n, "db", "1", "1", 2000)
	upload(t, g, "db", "2", 5, 3000)
	n.WaitCurrent(t, "db", "2")
	expect(t, n, "db", "2", "2", 3000)
	g.Put(t, "jobs/output/db/3/_SYMLINK", []byte("1\n"))
	n.WaitCurrent(t, "db", "3")
	expect(t, n, "db", "3", "1", 2000)
	upload(t, g, "another", "1", 1, 10)
	n.WaitCurrent(t, "another", "1")
}

// TestRefused uses the wrong secret: the log names the refused request and does not contain the
// secret.
func TestRefused(t *testing.T) {
	t.Parallel()
	g := gateway.Start(t)
	upload(t, g, "db", "1", 1, 10)
	n := process.Start(t, configure(t, g.Endpoint(), "not-the-secret"))
	n.WaitLog(t, "permission denied (SignatureDoesNotMatch")
	n.WaitLog(t, "with the access key "+gateway.AccessKey)
	if strings.Contains(n.Log(), "not-the-secret") {
		t.Error("the log tells the secret")
	}
}

// TestOutage stops the server in the middle of a load. The node keeps serving, and repeats the load
// when the server is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	g := gateway.Start(t)
	upload(t, g, "db", "1", 2, 1000)
	p := gateway.NewProxy(t, g.Addr)
	c := configure(t, p.Endpoint(), gateway.SecretKey)
	n := process.Start(t, c)
	n.WaitCurrent(t, "db", "1")
	p.Treat(t, `{"name": "slow", "type": "bandwidth", "attributes": {"rate": 100}}`)
	upload(t, g, "db", "2", 2, 20_000)
	n.WaitFor(t, "2 is loading", func() bool { return n.Health(t)["db"]["2"].State == "BUILDING" })
	p.Treat(t, `{"name": "cut", "type": "limit_data", "attributes": {"bytes": 0}}`)
	n.WaitFor(t, "2 is in ERROR", func() bool { return n.Health(t)["db"]["2"].State == "ERROR" })
	expect(t, n, "db", "1", "1", 1000)
	p.Heal(t)
	n.WaitCurrent(t, "db", "2")
	expect(t, n, "db", "2", "2", 20_000)
}
