//go:build integration

package redis

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

func TestMain(m *testing.M) {
	m.Run()
	process.RemoveBinary()
}

// records are those of the db words.
func records() map[string]string {
	all := map[string]string{"empty": "", "large": strings.Repeat("0123456789", 20_000), "a/b": "slash", "bin\x00\r\n\xff": "\x00\r\n$-1\r\n\xfe"}
	for i := range 300 {
		all[fmt.Sprintf("key-%03d", i)] = fmt.Sprintf("value-%d", i)
	}
	return all
}

// startSequins starts a node with the db words, and returns it with the address of the Redis protocol.
func startSequins(t *testing.T, sections string) (n *process.Node, addr string) {
	t.Helper()
	c, addr := configure(t, sections)
	n = process.Serve(t, c, "words", "v1")
	return n, addr
}

// startSecure is startSequins for a node that does not answer plain HTTP.
func startSecure(t *testing.T, sections string) (n *process.Node, addr string) {
	t.Helper()
	c, addr := configure(t, sections)
	n = process.Launch(t, c)
	n.WaitLog(t, "version active")
	return n, addr
}

// configure writes the db words.
func configure(t *testing.T, sections string) (c process.Config, addr string) {
	t.Helper()
	dir := t.TempDir()
	sequencefiles.WriteFile(t, filepath.Join(dir, "source", "words", "v1", "part-r-00000"), sequencefiles.WriterOptions{}, func(add func(key, value string)) {
		for k, v := range records() {
			add(k, v)
		}
	})

	addr = process.FreeAddr(t)
	return process.Config{Source: filepath.Join(dir, "source"), Store: filepath.Join(dir, "store"), Sections: fmt.Sprintf("[redis]\nbind = %q\n%s", addr, sections)}, addr
}

// startRedis starts a redis-server, and returns its address.
func startRedis(t *testing.T) string {
	t.Helper()
	addr := process.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	expect.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	process.Eventually(t, "redis-server listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return addr
}

// output runs a command and returns what it prints.
func output(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, &stderr)
	}
	return string(out)
}
