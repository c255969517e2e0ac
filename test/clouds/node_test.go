//go:build integration

package clouds_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/shard"
	"sequins/test/clouds"
	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

func TestMain(m *testing.M) {
	process.Parallel(4)
	m.Run()
	process.RemoveBinary()
}

// A kind is a kind of object stores, of all that nodes read.
type kind struct {
	url  string // of the bucket
	root string // the directory of the test in it
	put  func(t testing.TB, key string, data []byte)
	addr string // of the server
	// use makes the credentials and an address of the server known, partly in the environment, as users do.
	use func(endpoint string) (sections string, env []string)
	env []string // of the node
}

// source returns the source of nodes.
func (k kind) source() string { return k.url + "/" + k.root + "/output" }

var kinds = map[string]func(t *testing.T) kind{
	"s3": func(t *testing.T) kind {
		g := gateway.Start(t)
		return kind{url: "s3://" + gateway.Bucket, put: g.Put, addr: g.Addr, use: func(endpoint string) (string, []string) {
			return fmt.Sprintf("[s3]\nregion = %q\nendpoint = %q\npath_style = true\naccess_key_id = %q\nsecret_access_key = %q\n",
				gateway.Region, endpoint, gateway.AccessKey, gateway.SecretKey), nil
		}}
	},
	"gs": func(t *testing.T) kind {
		g := clouds.StartGCS(t)
		return kind{url: "gs://" + clouds.Bucket, put: g.Put, addr: g.Addr, use: func(endpoint string) (string, []string) {
			return "", []string{"STORAGE_EMULATOR_HOST=" + endpoint}
		}}
	},
	"abfss": func(t *testing.T) kind {
		a := clouds.SharedAzurite(t)
		return kind{url: "abfss://" + clouds.Bucket + "@" + clouds.Account + ".dfs.core.windows.net", put: a.Put, addr: a.Addr, use: func(endpoint string) (string, []string) {
			env := []string{"AZURE_STORAGE_ACCOUNT=" + clouds.Account, "AZURE_STORAGE_KEY=" + clouds.AccountKey}
			return fmt.Sprintf("[azure]\nendpoint = %q\n", endpoint+"/"+clouds.Account), env
		}}
	},
}

// each runs a test for each kind, with a node whose requests go through a proxy.
func each(t *testing.T, test func(t *testing.T, k kind, n *process.Node, p *gateway.Proxy)) {
	t.Parallel()
	for name, start := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := start(t)
			k.root = fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), rand.Uint32()) // Azurite is shared, also by -count 2
			p := gateway.NewProxy(t, k.addr)
			var sections string
			sections, k.env = k.use(p.Endpoint())
			c := process.Config{
				Source: k.source(), Store: filepath.Join(t.TempDir(), "store"), Extra: "refresh_period = \"100ms\"\nrequire_success_file = true",
				Sections: sections, Prefix: append([]string{"env"}, k.env...),
			}
			test(t, k, process.Start(t, c), p)
		})
	}
}

// write writes a version of files with n records, whose values begin with some text.
func write(t testing.TB, dir, values string, files, n int) {
	t.Helper()
	sequencefiles.WriteParts(t, dir, files, shard.String.Partition, func(add func(key, value string)) {
		for i := range n {
			add(fmt.Sprintf("key-%06d", i), fmt.Sprintf("%s/%d", values, i))
		}
	})
}

// upload uploads a version of files with n records, whose values name it, and _SUCCESS last, as a job does.
func (k kind) upload(t testing.TB, db, version string, files, n int) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, version, files, n)
	k.publish(t, db, version, dir)
}

// publish uploads a directory as a version.
func (k kind) publish(t testing.TB, db, version, dir string) {
	t.Helper()
	prefix := k.root + "/output/" + db + "/" + version
	gateway.PutTree(t, k.put, prefix, dir)
	k.put(t, prefix+"/_SUCCESS", nil)
}

// run runs a command of the program in the directory and with variables of a node.
func run(t testing.TB, n *process.Node, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(process.Binary(t), args...)
	cmd.Dir, cmd.Env = filepath.Dir(n.Conf), append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestVersions: a node loads what is uploaded, follows a link, and is pinned to a version by a command.
func TestVersions(t *testing.T) {
	each(t, func(t *testing.T, k kind, n *process.Node, _ *gateway.Proxy) {
		k.upload(t, "db", "1", 3, 2000)
		n.WaitCurrent(t, "db", "1")
		n.ExpectKeys(t, "db", "1", "1", 2000)
		k.upload(t, "db", "2", 5, 3000)
		n.WaitCurrent(t, "db", "2")
		n.ExpectKeys(t, "db", "2", "2", 3000)
		k.put(t, k.root+"/output/db/3/_SYMLINK", []byte("1\n"))
		n.WaitCurrent(t, "db", "3")
		n.ExpectKeys(t, "db", "3", "1", 2000)
		if out, err := run(t, n, k.env, "versions"); err != nil || !strings.Contains(out, "3") {
			t.Errorf("versions: %v\n%s", err, out)
		}
		if out, err := run(t, n, k.env, "pin", "db", "2"); err != nil || !strings.Contains(out, k.source()+"/db/_PIN") {
			t.Errorf("pin: %v\n%s", err, out)
		}
		n.WaitCurrent(t, "db", "2")
		n.ExpectKeys(t, "db", "2", "2", 3000)
		if out, err := run(t, n, k.env, "unpin", "db"); err != nil {
			t.Errorf("unpin: %v\n%s", err, out)
		}
		n.WaitCurrent(t, "db", "3")
		k.upload(t, "another", "1", 1, 10)
		n.WaitCurrent(t, "another", "1")
	})
}

// TestOutage cuts the connection in the middle of a load. The node keeps serving, and repeats the load later.
func TestOutage(t *testing.T) {
	each(t, func(t *testing.T, k kind, n *process.Node, p *gateway.Proxy) {
		k.upload(t, "db", "1", 2, 1000)
		n.WaitCurrent(t, "db", "1")
		p.Treat(t, `{"name": "slow", "type": "bandwidth", "attributes": {"rate": 100}}`)
		k.upload(t, "db", "2", 2, 20_000)
		n.WaitFor(t, "2 is loading", func() bool { return n.Health(t)["db"]["2"].State == "BUILDING" })
		p.Treat(t, `{"name": "cut", "type": "limit_data", "attributes": {"bytes": 0}}`)
		n.WaitFor(t, "2 is in ERROR", func() bool { return n.Health(t)["db"]["2"].State == "ERROR" })
		n.ExpectKeys(t, "db", "1", "1", 1000)
		p.Heal(t)
		n.WaitCurrent(t, "db", "2")
		n.ExpectKeys(t, "db", "2", "2", 20_000)
	})
}

// TestBuild builds finished blocks of a version in the bucket and puts them there, the manifest and _SUCCESS first. A node serves them.
func TestBuild(t *testing.T) {
	each(t, func(t *testing.T, k kind, n *process.Node, _ *gateway.Proxy) {
		dir, built := t.TempDir(), filepath.Join(t.TempDir(), "db", "2")
		write(t, dir, "2", 1, 2000)
		gateway.PutTree(t, k.put, k.root+"/raw/db/2", dir)
		k.put(t, k.root+"/raw/db/2/_SUCCESS", nil)
		raw := k.url + "/" + k.root + "/raw/db/2"
		if out, err := run(t, n, k.env, "build", "--config", n.Conf, raw, built); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		gateway.PutTree(t, k.put, k.root+"/output/db/2", built)
		n.WaitCurrent(t, "db", "2")
		n.ExpectKeys(t, "db", "2", "2", 2000)
	})
}

// TestUnchanged: of a version with one changed object of ten, one partition is loaded.
func TestUnchanged(t *testing.T) {
	each(t, func(t *testing.T, k kind, n *process.Node, _ *gateway.Proxy) {
		dir, changed := t.TempDir(), t.TempDir()
		write(t, dir, "1", 10, 500)
		write(t, changed, "2", 10, 500)
		k.publish(t, "db", "1", dir)
		n.WaitCurrent(t, "db", "1")
		n.WaitLog(t, "files=10/10")
		expect.NoError(t, os.Rename(filepath.Join(changed, "part-r-00004"), filepath.Join(dir, "part-r-00004")))
		k.publish(t, "db", "2", dir)
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
	})
}

// TestSecretFile: a node gets a key from a file, and refuses to tell it.
func TestSecretFile(t *testing.T) {
	t.Parallel()
	a := clouds.SharedAzurite(t)
	k := kind{put: a.Put, root: "secret"}
	k.upload(t, "db", "1", 1, 10)
	file := filepath.Join(t.TempDir(), "key")
	expect.NoError(t, os.WriteFile(file, []byte(clouds.AccountKey+"\n"), 0o600))
	c := process.Config{
		Source: "abfss://" + clouds.Bucket + "@" + clouds.Account + ".dfs.core.windows.net/secret/output", Store: filepath.Join(t.TempDir(), "store"),
		Sections: fmt.Sprintf("[azure]\nendpoint = %q\naccount_key_file = %q\n", a.Endpoint(), file),
	}
	n := process.Serve(t, c, "db", "1")
	n.ExpectKeys(t, "db", "1", "1", 10)
	c.Sections = fmt.Sprintf("[azure]\nendpoint = %q\naccount_key = %q\n", a.Endpoint(), "aHVudGVyMg==")
	c.Store = filepath.Join(t.TempDir(), "store")
	n = process.Start(t, c)
	n.WaitLog(t, "permission denied (AuthorizationFailure")
	if out, err := run(t, n, nil, "config"); err != nil || strings.Contains(out, "aHVudGVyMg") || !strings.Contains(out, "account_key = '***'") {
		t.Errorf("config: %v\n%s", err, out)
	}
	if strings.Contains(n.Log(), "aHVudGVyMg") {
		t.Error("the log tells the key")
	}
}
