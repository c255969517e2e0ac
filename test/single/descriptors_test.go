//go:build integration

package single

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sequins/test/process"
)

// TestOutOfDescriptors has a node with a limit of open files below its limit of connections. Clients for which there is
// no descriptor are refused at once, on every listener; those that are connected are answered; the log, the status and the
// metrics tell; and when connections are closed, all is as before.
func TestOutOfDescriptors(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	writeVersion(t, source, "words", "1", 2, 100, numbered("1"))
	redis := process.FreeAddr(t)
	c.Prefix = []string{"sh", "-c", `ulimit -n 100; exec "$@"`, "sh"}
	c.Extra = "refresh_period = \"1h\"\nmax_connections = 1000" // a listing needs a descriptor, which a client may get then
	c.Sections = "[redis]\nbind = \"" + redis + "\"\n"
	n := process.Start(t, c)
	n.WaitCurrent(t, "words", "1")
	monitor := process.NewClient(n.Debug) // as Prometheus, which keeps its connection
	defer monitor.Close()
	refused := func() string {
		r, err := monitor.Get("/metrics")
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(r.Body), "\nsequins_connections_without_descriptor_total ")
		count, _, _ := strings.Cut(after, "\n")
		return count
	}
	if got := refused(); got != "0" {
		t.Fatalf("%q connections were refused before there were any", got)
	}

	var open []*process.Client
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for full := false; !full; {
		if len(open) > 100 {
			t.Fatal("there is no limit")
		}
		c := n.Client()
		r, err := c.Get("/words/key-000001")
		if err != nil {
			t.Fatalf("connection %d: %v", len(open), err)
		}
		if full = r.Code == 503; !full {
			open = append(open, c)
			continue
		}
		if r.Header.Get("Retry-After") != "1" || string(r.Body) != "this node has no file descriptors left\n" {
			t.Errorf("refused with %+v %q", r.Header, r.Body)
		}
	}
	const get, ping = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "PING\r\n"
	for _, l := range []struct{ addr, request, refusal string }{
		{n.Addr, get, "HTTP/1.1 503 "}, {n.Debug, get, "HTTP/1.1 503 "}, {redis, ping, "-ERR this node has no file descriptors left\r\n"},
	} {
		wantRefused(t, l.addr, l.request, l.refusal)
	}

	if r, err := open[0].Get("/words/key-000001"); err != nil || string(r.Body) != "1/1" {
		t.Errorf("an open connection: %+v, %v", r, err)
	}
	health := func(c *process.Client) (st struct {
		Healthy       bool
		Level, Health string
		At            time.Time `json:"descriptors_exhausted_at"`
	}) {
		r, err := c.Get("/")
		if err == nil {
			err = json.Unmarshal(r.Body, &st)
		}
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	n.WaitFor(t, "the status says so", func() bool { return !health(open[0]).At.IsZero() })
	if st := health(open[0]); st.Healthy || st.Level != "warn" || !strings.Contains(st.Health, "out of file descriptors") {
		t.Errorf("the status is %+v", st)
	}
	if got := refused(); got == "0" || got == "" {
		t.Errorf("the metric is %q", got)
	}
	n.WaitLog(t, "no file descriptor is left: connections are refused")

	for _, c := range open {
		c.Close()
	}
	open = nil
	n.WaitFor(t, "clients are served again", func() bool {
		r, err := n.TryGet("/words/key-000001")
		return err == nil && r.Code == 200
	})
}

// wantRefused connects until a connection is refused at once. Connections before that, which take the descriptors that the
// node has used for a moment, stay open until the end of the test.
func wantRefused(t *testing.T, addr, request, refusal string) {
	t.Helper()
	for range 20 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		var answer [200]byte
		n, err := c.Read(answer[:])
		if err != nil {
			t.Fatalf("%s: %v", addr, err)
		}
		if strings.HasPrefix(string(answer[:n]), refusal) {
			return
		}
	}
	t.Fatalf("%s refuses nobody", addr)
}
