package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/internal/fsys"
	"sequins/test/expect"
)

// The files of a configuration and of its secrets are regular ones, and are bounded: a pipe or a device could be read for ever.
func TestRegularFiles(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe, large := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	expect.NoError(t, os.WriteFile(file, []byte(`source = "/data"`), 0o600))
	expect.NoError(t, os.Symlink(file, link))
	expect.NoError(t, syscall.Mkfifo(pipe, 0o600))
	expect.NoError(t, os.WriteFile(large, []byte(strings.Repeat("#", maxSecret+1)), 0o600))
	for _, path := range []string{file, link} {
		c, _, err := Load(path)
		expect.NoError(t, err)
		if c.Source != "/data" {
			t.Errorf("%s: source %q", path, c.Source)
		}
	}
	for path, want := range map[string]error{pipe: fsys.ErrNotRegular, dir: fsys.ErrNotRegular, "/dev/zero": fsys.ErrNotRegular, large: fsys.ErrTooLong} {
		_, _, err := Load(path)
		expect.Error(t, "Load of "+path, err, want)
		c := Config{Files: map[string]string{"zk.auth": path}}
		expect.Error(t, "ReadSecrets of "+path, c.ReadSecrets(), want)
	}
}
