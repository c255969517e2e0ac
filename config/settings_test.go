package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

// document writes settings as a file.
func document(all []Setting) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(s.Key + " = " + s.TOML() + "\n")
	}
	return b.String()
}

// The settings, written as a file, are the configuration again.
func TestSettingsAreAFile(t *testing.T) {
	for _, path := range []string{examplePath, "testdata/every-old-key.conf"} {
		t.Setenv("SEQUINS_DB__a.b__GATE_REQUIRED_KEYS", `{ "k\n" = "v'\"", "ü" = "" }`)
		want, _, err := Load(path)
		expect.NoError(t, err)
		all, _, err := Settings(path)
		expect.NoError(t, err)
		doc := document(all)
		want.S3.SecretAccessKey = strings.Repeat("*", min(len(want.S3.SecretAccessKey), 3))
		got, _, err := load(doc)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got)\n%s\n%s", err, diff, doc)
		}
	}
}

// White space around secrets is left out, as in files of their own.
func TestSecretsAreTrimmed(t *testing.T) {
	const secret = "0123456789abcdef"
	doc := "source = \"/d\"\n[azure]\nsas_token = \" sig=x\\n\"\n[sharding]\nsecret = \"" + secret + "\\r\\n\"\n"
	c, _, err := fromEnvironment(doc, "SEQUINS_S3_SECRET_ACCESS_KEY=a b\n", "SEQUINS_S3_ACCESS_KEY_ID=x", "SEQUINS_ZK_AUTH=u:p\n", "SEQUINS_EVENTS_WEBHOOK=http://h/\n")
	if err != nil || c.Azure.SASToken != "sig=x" || c.Sharding.Secret != secret || c.S3.SecretAccessKey != "a b" || c.ZK.Auth != "u:p" || c.Events.Webhook != "http://h/" {
		t.Errorf("%+v, %+v, %v", c.Azure, c.S3, err)
	}
}

// Each setting has its place, and secrets are not shown.
func TestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.conf")
	t.Setenv("SEQUINS_SHARDING_ZONE", "a")
	doc := "source = \"/d\"\n[Sharding]\nenabled = true\nSecret = \"hunter2hunter2hunter2\"\n[db.words.gate]\nmin_records = 5\n[events]\nwebhook = \"http://u:hunter2@h\"\nsecret_file = \"/s\""
	expect.NoError(t, os.WriteFile(path, []byte(doc), 0o600))
	all, _, err := Settings(path, Flag{Name: "--bind", Key: "bind", Value: ":1"})
	expect.NoError(t, err)
	got := make(map[string]string)
	for _, s := range all {
		got[s.Key] = s.TOML() + " " + s.From
	}
	for key, want := range map[string]string{
		"source": "'/d' " + path + ":1", "bind": "':1' --bind", "sharding.zone": "'a' SEQUINS_SHARDING_ZONE", "sharding.secret": "'***' " + path + ":4",
		"sharding.enabled": "true " + path + ":3", "sharding.replication": "2 default", "settle": "'30s' default", "zk.servers": "['localhost:2181'] default",
		"db.words.gate.min_records": "5 " + path + ":6", "gate.required_keys": "{} default", "require_success_file": "'auto' default",
		"events.webhook": "'***' " + path + ":8", "events.secret_file": "'/s' " + path + ":9", "load.peer_bandwidth_mb_per_second": "'100MiB/s' default",
	} {
		if got[key] != want {
			t.Errorf("%s: %s, want %s", key, got[key], want)
		}
	}
	if _, found := got["db.words.partitioner"]; found {
		t.Error("a key is listed that [db.words] does not set")
	}
	if strings.Contains(document(all), "hunter2") {
		t.Error("a secret is shown")
	}
	if n := len(keys()); len(all) < n/2 {
		t.Errorf("%d settings of %d keys", len(all), n)
	}
}
