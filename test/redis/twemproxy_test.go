//go:build integration

package redis

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestTwemproxy reads through twemproxy, which spreads keys over two nodes and splits MGET.
func TestTwemproxy(t *testing.T) {
	_, one := startSequins(t, "")
	_, other := startSequins(t, "")
	addr := process.FreeAddr(t)
	config := filepath.Join(t.TempDir(), "nutcracker.yml")
	expect.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `sequins:
  listen: %s
  hash: fnv1a_64
  distribution: ketama
  redis: true
  timeout: 10000
  servers:
   - %s:1 one
   - %s:1 other
`, addr, one, other), 0o644))
	proxy := exec.Command("nutcracker", "-c", config, "-s", port(t, process.FreeAddr(t)))
	expect.NoError(t, proxy.Start())
	t.Cleanup(func() {
		proxy.Process.Kill() //nolint:errcheck // it may have ended
		proxy.Wait()         //nolint:errcheck // it was killed
	})
	expect.Eventually(t, "twemproxy listens", func() bool {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	cli := func(words ...string) string {
		return output(t, "", "redis-cli", append([]string{"-p", port(t, addr)}, words...)...)
	}
	if got := cli("MGET", "words/key-001", "words/nokey", "words/key-002", "words/key-003"); got != "value-1\n\nvalue-2\nvalue-3\n" {
		t.Errorf("MGET: %q", got)
	}
	if got := cli("HGET", "words", "key-003"); got != "value-3\n" {
		t.Errorf("HGET: %q", got)
	}
	if got := cli("GET", "words/large"); len(got) != 200_001 {
		t.Errorf("a large value has %d bytes", len(got)-1)
	}
	if got := cli("SET", "words/x", "y"); !strings.HasPrefix(got, "ERR unknown command") {
		t.Errorf("SET: %q", got)
	}
	pipelineThrough(t, addr)
}

// pipelineThrough sends many GETs in one write. The answers come in their order, from both nodes.
func pipelineThrough(t *testing.T, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	expect.NoError(t, err)
	defer c.Close()
	expect.NoError(t, c.SetDeadline(time.Now().Add(process.Deadline)))
	var commands, want strings.Builder
	for i := range 300 {
		fmt.Fprintf(&commands, "*2\r\n$3\r\nGET\r\n$13\r\nwords/key-%03d\r\n", i)
		value := fmt.Sprintf("value-%d", i)
		fmt.Fprintf(&want, "$%d\r\n%s\r\n", len(value), value)
	}
	_, err = io.WriteString(c, commands.String())
	expect.NoError(t, err)
	got := make([]byte, want.Len())
	_, err = io.ReadFull(c, got)
	expect.NoError(t, err)
	if string(got) != want.String() {
		t.Errorf("the answers of a pipeline are %.200q", got)
	}
}

func port(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	expect.NoError(t, err)
	return port
}
