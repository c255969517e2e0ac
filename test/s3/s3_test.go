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
	sequencefiles.WriteParts(t, dir, files, sequencefiles.InTurn(), func(add func(key, value string)) {
		for i := range n {
			add(fmt.Sprintf("key-%06d", i), fmt.Sprintf("%s/%d", version, i))
		}
	})
	prefix := "jobs/output/" + db + "/" + version
	g.PutTree(t, prefix, dir)
	g.Put(t, prefix+"/_SUCCESS", nil)
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
