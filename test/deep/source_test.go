//go:build integration

package deep

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/gateway"
	"sequins/test/harness"
)

// TestHDFS: databases are listed and a load is planned, with data of a datanode, as the configured user; each fault has its line.
func TestHDFS(t *testing.T) {
	h := harness.Start(t)
	namenode := h.Do(t, "dfs start")["nn"]
	h.Do(t, "job out=hdfs://"+namenode+"/data/db/1 records=100 reducers=1")
	user := os.Getenv("USER")
	if user == "" {
		user = "root"
	}
	t.Setenv("HADOOP_USER_NAME", user)
	url := "hdfs://" + namenode + "/data"
	check(t, configuration(t, url, ""), 0).expects("source", "ok", "1 database, whose newest versions can be loaded")
	check(t, configuration(t, "hdfs://"+namenode+"/none", ""), 0).expects("source", "failed", "cannot be listed", "/none")

	h.Do(t, "dfs killdn i=0")
	check(t, configuration(t, url, ""), 0).expects("source", "failed", "cannot be loaded", "part-")
	h.Do(t, "dfs restartdn")
	h.Do(t, "dfs killnn i=0")
	check(t, configuration(t, url, ""), 0).expects("source", "failed", "connection refused")
}

// TestHDFSWithKerberos: a keytab that is not there is named.
func TestHDFSWithKerberos(t *testing.T) {
	h := harness.Start(t)
	kdc := h.Do(t, "kdc start")
	r := h.Do(t, "dfs start secure")
	url := "hdfs://" + strings.Replace(r["nn"], "127.0.0.1", "localhost", 1) + "/data"
	h.Do(t, "job out="+url+"/db/1 records=100 reducers=1")
	t.Setenv("KRB5_CONFIG", kdc["krb5conf"])
	settings := func(keytab string) string {
		return fmt.Sprintf("[hdfs]\nconfig_dir = %q\nprincipal = %q\nkeytab = %q\n", r["conf"], kdc["principal"], keytab)
	}
	check(t, configuration(t, url, settings(kdc["keytab"])), 0).expects("source", "ok", "can be loaded")
	check(t, configuration(t, url, settings("/none.keytab")), 0).expects("source", "failed", "/none.keytab")
}

// TestS3: refused credentials are named without the secret; each fault has its line.
func TestS3(t *testing.T) {
	g := gateway.Start(t)
	local := t.TempDir()
	writeVersion(t, local, 10)
	data, err := os.ReadFile(filepath.Join(local, "db", "1", "part-00000"))
	if err != nil {
		t.Fatal(err)
	}
	g.Put(t, "data/db/1/part-00000", data)
	settings := func(endpoint, key, secret string) string {
		return fmt.Sprintf("[s3]\nregion = %q\nendpoint = %q\npath_style = true\naccess_key_id = %q\nsecret_access_key = %q\n", gateway.Region, endpoint, key, secret)
	}
	source := "s3://" + gateway.Bucket + "/data"
	r := check(t, configuration(t, source, settings(g.Endpoint(), gateway.AccessKey, gateway.SecretKey)), 0)
	r.expects("source", "ok", "1 database, whose newest versions can be loaded")
	if contains(r.all, gateway.SecretKey) || contains(r.all, gateway.AccessKey) {
		t.Errorf("the credentials are shown:\n%s", r.all)
	}
	check(t, configuration(t, source, settings(g.Endpoint(), gateway.AccessKey, "wrong")), 0).
		expects("source", "failed", "cannot be listed", "with the access key", "SignatureDoesNotMatch")
	check(t, configuration(t, "s3://none/data", settings(g.Endpoint(), gateway.AccessKey, gateway.SecretKey)), 0).expects("source", "failed", "NoSuchBucket")
	check(t, configuration(t, "s3://"+gateway.Bucket+"/none", settings(g.Endpoint(), gateway.AccessKey, gateway.SecretKey)), 0).expects("source", "failed", "s3://bucket/none/: file does not exist")
	check(t, configuration(t, source, settings("http://none.invalid:9000", gateway.AccessKey, gateway.SecretKey)), 0).expects("source", "failed", "no such host")

	// from the environment
	t.Setenv("AWS_ACCESS_KEY_ID", gateway.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", gateway.SecretKey)
	check(t, configuration(t, source, fmt.Sprintf("[s3]\nregion = %q\nendpoint = %q\npath_style = true\n", gateway.Region, g.Endpoint())), 0).
		expects("source", "ok", "can be loaded")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	check(t, configuration(t, source, fmt.Sprintf("[s3]\nregion = %q\nendpoint = %q\npath_style = true\n", gateway.Region, g.Endpoint())), 0).
		expects("source", "failed", "from EnvConfigCredentials", "SignatureDoesNotMatch")

	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	begin := time.Now()
	check(t, configuration(t, source, settings("http://"+mute.Addr().String(), gateway.AccessKey, gateway.SecretKey)), 0).expects("source", "failed")
	if took := time.Since(begin); took > 25*time.Second {
		t.Errorf("a server that does not answer took %s", took)
	}
	g.Kill()
	check(t, configuration(t, source, settings(g.Endpoint(), gateway.AccessKey, gateway.SecretKey)), 0).expects("source", "failed", "connection refused")
}

// TestPermissions: files, databases and the source of another user.
func TestPermissions(t *testing.T) {
	root, err := os.MkdirTemp("", "sequins-source-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	writeVersion(t, root, 10)
	const nobody = 65534
	conf := fmt.Sprintf("source = %q\nlocal_store = %q\nbind = \"127.0.0.1:0\"\n", root, filepath.Join(root, "..", "sequins-none"))
	check(t, conf, nobody).expects("source", "ok", "can be loaded")
	for _, path := range []string{"db/1/part-00000", "db", "."} {
		path := filepath.Join(root, path)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
		check(t, conf, nobody).expects("source", "failed", "permission denied", "this runs as user nobody (65534): run it as the user of the service")
		if err := os.Chmod(path, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}
