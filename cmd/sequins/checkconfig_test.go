package main

import (
	"crypto/x509"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/authority"
	"sequins/test/expect"
)

// check-config refuses certificates with which a node would not start, and warns of those that clients will refuse.
func TestCheckConfigLooksAtCertificates(t *testing.T) {
	a, unknown := authority.New(t, "ca"), authority.New(t, "unknown")
	a.Issue("node", nil)
	unknown.Issue("foreign", nil)
	a.Issue("server only", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	a.Issue("other", nil)
	a.Issue("old", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	a.Issue("early", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })
	const cluster = "[zk]\nservers = [\"localhost:2181\"]\n[sharding]\nenabled = true\nadvertised_hostname = %q\n"
	clients := fmt.Sprintf("client_ca = %q\n", a.File("ca.pem"))
	foreign, err := filepath.Rel(a.Dir, unknown.File("foreign"))
	expect.NoError(t, err)
	conf := filepath.Join(t.TempDir(), "sequins.conf")
	for name, test := range map[string]struct {
		certificate, key, more string
		code                   int
		want                   string
	}{
		"good":                   {"node", "node", "", exitOK, ""},
		"of different pairs":     {"node", "other", "", exitFailure, "tls.certificate: tls: private key does not match"},
		"expired":                {"old", "old", "", exitOK, "warning: tls.certificate: clients will refuse it: x509: certificate has expired"},
		"not valid yet":          {"early", "early", "", exitOK, "is before"},
		"on another machine":     {"none", "none", "", exitOK, "warning: a file cannot be checked here: tls.certificate: open "},
		"good in a cluster":      {"node", "node", fmt.Sprintf(cluster, "localhost"), exitOK, ""},
		"expired in a cluster":   {"old", "old", fmt.Sprintf(cluster, "localhost"), exitFailure, "expired"},
		"of another host's name": {"node", "node", fmt.Sprintf(cluster, "node1.example"), exitFailure, "not node1.example"},
		"for servers only":       {"server only", "server only", clients + fmt.Sprintf(cluster, "localhost"), exitFailure, "incompatible key usage"},
		"of another authority":   {foreign, foreign, fmt.Sprintf(cluster, "localhost"), exitFailure, "certificate signed by unknown authority"},
	} {
		writeFile(t, conf, fmt.Sprintf("source = \"/data\"\n[tls]\ncertificate = %q\nkey = %q\nca = %q\n%s",
			a.File(test.certificate+".pem"), a.File(test.key+"-key.pem"), a.File("ca.pem"), test.more))
		if r := sequins(t, "check-config", conf); r.code != test.code || !strings.Contains(r.stderr, test.want) || (r.stderr == "") != (test.want == "") {
			t.Errorf("%s: exit code %d, %s", name, r.code, r.stderr)
		}
	}
}

// check-config refuses files with which a node would not start, and warns of those that are not here.
func TestCheckConfigLooksAtFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, content)
		return path
	}
	tokens, none := file("tokens", "reader 0123456789abcdef *\n"), filepath.Join(dir, "none")
	const auth, secret = "[auth]\ntokens_file = %q\n", "[sharding]\nenabled = true\nsecret_file = %q\n"
	const zk, s3 = "[sharding]\nenabled = true\n[zk]\nauth_file = %q\n", "[s3]\naccess_key_id = \"A\"\nsecret_access_key_file = %q\n"
	for name, test := range map[string]struct {
		keys, file string
		code       int
		want       string
	}{
		"tokens":               {auth, tokens, exitOK, ""},
		"malformed tokens":     {auth, file("bad", "x y z\n"), exitFailure, "bad:1: "},
		"no tokens":            {auth, none, exitOK, "warning: a file cannot be checked here: auth.tokens_file: "},
		"secret":               {secret, file("secret", "0123456789abcdef0123\n"), exitOK, ""},
		"short secret":         {secret, file("short", "x\n"), exitFailure, "sharding.secret_file: what is in "},
		"no secret":            {secret, none, exitOK, "warning: a file cannot be checked here: sharding.secret_file: "},
		"ZooKeeper's user":     {zk, file("user", "me:secret\n"), exitOK, ""},
		"no user of ZooKeeper": {zk, file("nobody", "hunter2\n"), exitFailure, "nobody is not of the form user:password"},
		"secret of S3":         {s3, file("s3", "abc/+=\n"), exitOK, ""},
		"empty secret of S3":   {s3, file("empty", "\n"), exitFailure, "empty is empty"},
		"no secret of S3":      {s3, none, exitOK, "warning: a file cannot be checked here: s3.secret_access_key_file: "},
		"key of Azure":         {"[azure]\naccount_key_file = %q\n", file("azure", "abc/+A==\n"), exitOK, ""},
		"bad key of Azure":     {"[azure]\naccount_key_file = %q\n", file("badkey", "hunter2!\n"), exitFailure, "badkey is not base64"},
		"bad SAS of Azure":     {"[azure]\nsas_token_file = %q\n", file("badsas", "sig=a b\n"), exitFailure, "badsas is not a SAS token"},
		"empty key of Azure":   {"[azure]\naccount_key_file = %q\n", file("empty", "\n"), exitFailure, "empty is empty"},
		"empty SAS of Azure":   {"[azure]\nsas_token_file = %q\n", file("empty", "\n"), exitFailure, "empty is empty"},
	} {
		conf := file("sequins.conf", "source = \"/data\"\n"+fmt.Sprintf(test.keys, test.file))
		r := sequins(t, "check-config", conf)
		if r.code != test.code || !strings.Contains(r.stderr, test.want) || (r.stderr == "") != (test.want == "") {
			t.Errorf("%s: exit code %d, %s", name, r.code, r.stderr)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "requests")); err != nil || len(left) > 0 {
		t.Errorf("%q was made, %v", left, err)
	}
}

// A configuration that is all in the environment can be checked without a file.
func TestCheckConfigOfTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	for name, value := range map[string]string{"SOURCE": demoSource(t, dir), "LOCAL_STORE": filepath.Join(dir, "store"), "BIND": "127.0.0.1:0"} {
		t.Setenv("SEQUINS_"+name, value)
	}
	cmd := command(t, "check-config")
	cmd.Dir = t.TempDir()
	if r := finish(t, cmd); r.code != exitOK || !strings.HasPrefix(r.stdout, "the environment is good") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	t.Setenv("SEQUINS_REFRESH_PERIOD", "soon")
	cmd = command(t, "check-config")
	cmd.Dir = t.TempDir()
	if r := finish(t, cmd); r.code != exitFailure || !strings.Contains(r.stderr, "SEQUINS_REFRESH_PERIOD: \"soon\" is not a duration") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
