package config

import (
	"strings"
	"testing"

	"sequins/test/expect"
)

// The keys that nodes compare have the values of the file, for databases only where they differ, and none is a secret.
func TestAlike(t *testing.T) {
	c, _, err := load(`source = "/d"
[storage]
block_size = "8KiB"
[sharding]
enabled = true
secret = "hunter2hunter2hunter2"
[gate]
required_keys = { a = "` + strings.Repeat("x", 500) + `", b = "\n" }
[db."a.b"]
keep_versions = 3
partitioner = "auto"
[db.words.gate]
max_shrink = 0.5`)
	expect.NoError(t, err)
	got := c.Alike()
	for key, want := range map[string]string{
		"source": "'/d'", "storage.block_size": "'8KiB'", "sharding.replication": "2", `db."a.b".keep_versions`: "3", "db.words.gate.max_shrink": "0.5",
		"require_success_file": "'auto'", "version_remove_timeout": "'10m0s'",
	} {
		if got[key] != want {
			t.Errorf("%s = %s, want %s", key, got[key], want)
		}
	}
	if keys := got["gate.required_keys"]; len(keys) > 220 || !strings.Contains(keys, "SHA-256") {
		t.Errorf("required_keys = %s", keys)
	}
	for key, value := range got {
		if strings.Contains(value, "hunter2") || strings.Contains(value, "\n") || key == "db.words.keep_versions" || key == `db."a.b".partitioner` {
			t.Errorf("%s = %s", key, value)
		}
	}
	for _, key := range []string{"bind", "local_store", "sharding.zone", "load.memory", "sharding.secret"} {
		if _, found := got[key]; found {
			t.Errorf("%s is compared", key)
		}
	}
}
