package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
)

func TestReadRegular(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	expect.NoError(t, os.WriteFile(file, []byte("12345"), 0o600))
	expect.NoError(t, os.Symlink(file, link))
	expect.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{file, link} {
		if doc, err := readFile(path, openRegular, 5); string(doc) != "12345" || err != nil {
			t.Errorf("%s: %q, %v", path, doc, err)
		}
	}
	for path, want := range map[string]string{
		pipe:        pipe + " is not a regular file",
		dir:         dir + " is not a regular file",
		"/dev/zero": "/dev/zero is not a regular file",
		link:        link + " is larger than 4 bytes",
	} {
		if doc, err := readFile(path, openRegular, 4); doc != nil || err == nil || err.Error() != want {
			t.Errorf("%s: %q, %v", path, doc, err)
		}
	}
	_, err := readFile(file+"2", openRegular, 4)
	expect.Error(t, "no file", err, fs.ErrNotExist)
}

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
	if _, _, err := Reload(pipe); err == nil || err.Error() != "reading the configuration: "+pipe+" is not a regular file" {
		t.Errorf("Reload: %v", err)
	}
	large := pipe + ".large"
	expect.NoError(t, os.WriteFile(large, []byte(strings.Repeat("#", maxFile+1)), 0o600))
	for _, load := range []func(string, ...Flag) (Config, []*Problem, error){Load, Reload} {
		if _, _, err := load(large); err == nil || err.Error() != "reading the configuration: "+large+" is larger than 262144 bytes" {
			t.Errorf("a large file: %v", err)
		}
	}
}
