package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
)

// A start may read a pipe, a reload may not.
func TestReloadIsOfRegularFiles(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	expect.NoError(t, syscall.Mkfifo(pipe, 0o600))
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte(`source = "/data"`), 0) }() // until somebody reads
	c, _, err := Load(pipe)
	if err := errors.Join(err, <-written); err != nil || c.Source != "/data" {
		t.Errorf("Load: %q, %v", c.Source, err)
	}
	if _, _, err := Reload(pipe); err == nil || err.Error() != "reading the configuration: open "+pipe+": not a regular file" {
		t.Errorf("Reload: %v", err)
	}
	large := pipe + ".large"
	expect.NoError(t, os.WriteFile(large, []byte(strings.Repeat("#", maxFile+1)), 0o600))
	for _, load := range []func(string, ...Flag) (Config, []*Problem, error){Load, Reload} {
		if _, _, err := load(large); err == nil || err.Error() != "reading the configuration: read "+large+": file exceeds its size limit of 262144 bytes" {
			t.Errorf("a large file: %v", err)
		}
	}
}

// The file of a secret may be a link, as in Kubernetes, to a regular file.
func TestSecretBehindALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	expect.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	expect.NoError(t, os.Symlink(file, link))
	c := Config{Files: map[string]string{"sharding.secret": link}}
	if err := c.ReadSecrets(); err != nil || c.Sharding.Secret != "0123456789abcdef" {
		t.Errorf("%q, %v", c.Sharding.Secret, err)
	}
	for _, path := range []string{dir, "/dev/zero"} {
		c.Files["sharding.secret"] = path
		if err := c.ReadSecrets(); err == nil || err.Error() != "sharding.secret_file: open "+path+": not a regular file" {
			t.Errorf("%s: %v", path, err)
		}
	}
}
