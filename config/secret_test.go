package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

// Problems of values that may be passwords or URLs with one do not show these.
func TestProblemsDoNotShowSecrets(t *testing.T) {
	for doc, want := range map[string]string{
		`tracing.otlp_endpoint = "http://user:hunter2@host:4318x"`:             `"http://***@host:4318x" is not a URL`,
		`tracing.otlp_endpoint = "http://user:hunter2@host/v1/traces"`:         `"http://***@host/v1/traces" ends with`,
		`tracing.otlp_endpoint = "http://user:hunter2@host"`:                   `has more than host, port and path`,
		`s3.endpoint = "http://u:hunter2@h"`:                                   `has more than host, port and path`,
		`s3.endpoint = "u:hunter2@h"`:                                          `"***@h" is not a URL`,
		`s3.endpoint = "http://u:hun/ter2@h"`:                                  `"http://***@h" is not a URL`,
		`azure.endpoint = "https://a.blob.core.windows.net/?sv=1&sig=hunter2"`: `has more than host, port and path`,
		`azure.endpoint = "https://a.blob.core.windows.net/?"`:                 `has more than host, port and path`,
		`azure.endpoint = "https://a:hunter2@h"`:                               `has more than host, port and path`,
		`zk.servers = ["u:hunter2@h:1"]`:                                       `"***@h:1" is not an address`,
		`datadog.url = "http://u:hunter2@x"`:                                   `"http://***@x" is not an address`,
		`http.allowed_origins = ["http://a:hunter2@b"]`:                        `"http://***@b" is not an origin`,
		`bind = "u:hunter2@h"`:                                                 `"***@h" has no valid port`,
		`events.secret = 72637`:                                                `must be a string`,
		`Azure.Account_Key = 72637`:                                            `must be a string`,
		`source = "abfss://c@a.dfs.core.windows.net/p?sig=hunter2%zz&x="`:      `has more than a host and a path`,
		`source = "s3://u:hunter2@b:x/"`:                                       `"s3://***@b:x/" is not a valid URL`,
		`source = "u:hunter2@b"`:                                               `"***@b" is not an absolute path`,
	} {
		head := "source = \"/d\"\n"
		if strings.HasPrefix(doc, "source") {
			head = ""
		}
		_, _, err := load(head + doc)
		if got := report(err); !strings.Contains(got, ": "+want) || strings.Contains(got, "ter2") || strings.Contains(got, "72637") {
			t.Errorf("%s\ngot  %s\nwant %s", doc, got, want)
		}
	}
}

// A secret, and a zone, can be in a file: the key with _file names it. Nothing is read before ReadSecrets.
func TestSecretsInFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	want := map[string]string{}
	var doc strings.Builder
	doc.WriteString("source = \"/d\"\n")
	texts := map[string]string{"s3.secret_access_key": "s", "azure.account_key": "AAAA", "azure.sas_token": "sig=x", "zk.auth": "u:p", "events.webhook": "http://h/"}
	for _, key := range fileKeys() {
		text, ok := texts[key]
		if !ok {
			text = "0123456789abcdef"
		}
		want[key] = file(key, text+"\n")
		if key != "azure.sas_token" { // one of [azure] is enough
			doc.WriteString(key + "_File = '" + want[key] + "'\n")
		}
	}
	doc.WriteString("s3.access_key_id = \"k\"\n")
	delete(want, "azure.sas_token")
	c, _, err := load(doc.String())
	if diff := cmp.Diff(want, c.Files); diff != "" || err != nil {
		t.Fatalf("%v, -want +got\n%s", err, diff)
	}
	expect.NoError(t, c.ReadSecrets("s3"))
	if c.S3.SecretAccessKey != "s" || c.ZK.Auth != "" {
		t.Errorf("%+v, %+v", c.S3, c.ZK)
	}
	expect.NoError(t, c.ReadSecrets())
	if c.ZK.Auth != "u:p" || c.Sharding.Secret != "0123456789abcdef" || c.Sharding.Zone != "0123456789abcdef" || c.Events.Webhook != "http://h/" {
		t.Errorf("%+v, %+v, %+v", c.ZK, c.Sharding, c.Events)
	}
	for key, test := range map[string]struct{ text, want string }{
		"sharding.secret":      {"hunter2", "is not 16 to 512"},
		"events.webhook":       {"hunter2", "is not an http:// or https:// URL"},
		"s3.secret_access_key": {" \n", "is empty"},
		"sharding.zone":        {"a\nb", "is not one line"},
	} {
		c := Config{Files: map[string]string{key: file("bad", test.text)}}
		if err := c.ReadSecrets(); err == nil || !strings.HasPrefix(err.Error(), key+"_file: ") || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", key, err)
		}
	}
	for doc, want := range map[string]string{
		"[sharding]\nsecret = \"0123456789abcdef\"\nsecret_file = \"/s\"": "sequins.conf:4: sharding.secret_file: is set, and so is secret",
		"[sharding]\nsecret_file = 5":                                     "sequins.conf:3: sharding.secret_file: must be a string",
		"[sharding]\nweight_file = \"x\"":                                 "sequins.conf:3: sharding.weight_file: unknown key",
		"[zk]\nauth_fil = \"x\"":                                          "sequins.conf:3: zk.auth_fil: unknown key; did you mean zk.auth_file?",
		"_file = \"x\"":                                                   "sequins.conf:2: _file: unknown key",
	} {
		if _, _, err := load("source = \"/d\"\n" + doc); !strings.HasPrefix(report(err), want) {
			t.Errorf("%s: %s, want %s", doc, report(err), want)
		}
	}
}

// A variable overrides the value of the file, in whichever of both ways it is there.
func TestVariablesOfSecrets(t *testing.T) {
	const secret = "0123456789abcdef"
	c, _, err := fromEnvironment("source = \"/d\"\n[Sharding]\nSecret_File = \"/s\"\nzone = \"a\"", "SEQUINS_SHARDING_SECRET="+secret, "SEQUINS_SHARDING_ZONE_FILE=/z")
	if err != nil || c.Sharding.Secret != secret || c.Sharding.Zone != "" || len(c.Files) != 1 || c.Files["sharding.zone"] != "/z" {
		t.Errorf("%v, %+v, %v", err, c.Sharding, c.Files)
	}
	_, _, err = fromEnvironment("source = \"/d\"", "SEQUINS_SHARDING_SECRET="+secret, "SEQUINS_SHARDING_SECRET_FILE=/s")
	if want := "SEQUINS_SHARDING_SECRET_FILE: is set, and so is secret"; report(err) != want {
		t.Errorf("%s, want %s", report(err), want)
	}
}

// A cluster with tokens needs a secret.
func TestTokensNeedASecret(t *testing.T) {
	for more, want := range map[string]string{
		"":                                       "sharding.secret: is not set",
		"secret = \"0123456789abcdef\"":          "",
		"secret_file = \"/x\"":                   "",
		"secret = \"0123456789abcdef\\r\\n: y\"": "sharding.secret: is not 16 to 512",
	} {
		_, _, err := load("source = \"/d\"\nauth.tokens_file = \"/t\"\n[sharding]\nenabled = true\n" + more)
		if got := report(err); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %s", more, got)
		}
	}
}
