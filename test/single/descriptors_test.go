//go:build integration

package single

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestOutOfDescriptors has a node with a limit of open files below its limit of connections. Clients for which there is
// no descriptor wait; those that are connected are answered; the log tells; and when connections are closed, all is as before.
func TestOutOfDescriptors(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	writeVersion(t, source, "words", "1", 2, 100, numbered("1"))
	c.Prefix = []string{"sh", "-c", `ulimit -n 100; exec "$@"`, "sh"}
	c.Extra = "refresh_period = \"1h\"\nmax_connections = 1000" // a listing needs a descriptor, which a client may get then
	n := process.Serve(t, c, "words", "1")
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	ask := func(c net.Conn, within time.Duration) (answer string, err error) {
		expect.NoError(t, c.SetDeadline(time.Now().Add(within)))
		if _, err := io.WriteString(c, "GET /words/key-000001 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		var b [1000]byte
		k, err := c.Read(b[:])
		return string(b[:k]), err
	}
	var waiting net.Conn
	for waiting == nil {
		if len(open) > 100 {
			t.Fatal("there is no limit")
		}
		c, err := net.Dial("tcp", n.Addr)
		expect.NoError(t, err)
		if answer, err := ask(c, 2*time.Second); err != nil {
			waiting = c
		} else if open = append(open, c); !strings.HasSuffix(answer, "\r\n\r\n1/1") {
			t.Fatalf("connection %d: %q", len(open), answer)
		}
	}
	defer waiting.Close()
	n.WaitLog(t, "too many open files")
	if answer, err := ask(open[0], 20*time.Second); err != nil || !strings.HasSuffix(answer, "\r\n\r\n1/1") {
		t.Errorf("an open connection: %q, %v", answer, err)
	}
	for _, c := range open {
		c.Close()
	}
	open = nil
	if answer, err := ask(waiting, 20*time.Second); err != nil || !strings.Contains(answer, "\r\n\r\n1/1") {
		t.Errorf("the client that has waited: %q, %v", answer, err)
	}
}
