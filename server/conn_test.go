package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/test/expect"
)

// pipes is a listener whose connections are pipes, so that a test can have a
// clock of its own.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	a, b := net.Pipe()
	p.conns <- a
	return b
}

// inBubble serves pipes on a clock that a test can turn.
func inBubble(t *testing.T, c testCatalog, o testOptions, test func(s *Server, dial func() net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ln := &pipes{make(chan net.Conn), make(chan struct{})}
		s := newServer(c, o)
		done := make(chan error, 1)
		go func() { done <- s.Serve(ln) }()
		defer func() {
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute) // for what is on its way out
		}()
		test(s, ln.dial)
	})
}

// A client gets Idle between requests, Read for each, and no byte more.
func TestTimeouts(t *testing.T) {
	const request = "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n"
	o := testOptions{Timeouts: Timeouts{Idle: time.Minute}}
	inBubble(t, catalogOf(t, map[string]string{"a": "one"}), o, func(_ *Server, dial func() net.Conn) {
		client := dial()
		r := bufio.NewReader(client)
		for _, pause := range []time.Duration{0, 58 * time.Second, time.Second, 58 * time.Second} {
			time.Sleep(pause)
			io.WriteString(client, request[:20])
			time.Sleep(8 * time.Second)
			io.WriteString(client, request[20:])
			if got := read(t, r, "GET"); got.status != 200 || got.closed {
				t.Fatalf("after a pause of %v: %+v", pause, got)
			}
		}
		between(t, "an idle connection", 59*time.Second, 61*time.Second, func() {
			if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("an idle connection: %v", err)
			}
		})
		for _, sent := range []string{"G", request[:20]} {
			client = dial()
			between(t, sent[:min(20, len(sent))], 9*time.Second, 11*time.Second, func() {
				io.WriteString(client, sent)
				if got := read(t, bufio.NewReader(client), "GET"); got.status != 408 || !got.closed {
					t.Errorf("%.20q and no more: %+v", sent, got)
				}
			})
			client.Close()
		}
		client = dial()
		between(t, "half of the keys of a batch", 9*time.Second, 11*time.Second, func() {
			io.WriteString(client, "POST /db HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n[\"a\"")
			if got := read(t, bufio.NewReader(client), "POST"); got.status != 408 {
				t.Errorf("half of the keys of a batch: %+v", got)
			}
		})
		client.Close()
		client = dial()
		between(t, "half of a long header", 9*time.Second, 11*time.Second, func() {
			io.WriteString(client, "GET /db/"+strings.Repeat("k", 5000))
			if _, err := io.ReadAll(client); err != nil {
				t.Errorf("half of a long header: %v", err)
			}
		})
		client = dial()
		between(t, "a connection without a request", 9*time.Second, 11*time.Second, func() {
			if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("a connection without a request: %v", err)
			}
		})
		client = dial()
		between(t, "a request of one byte a second", 9*time.Second, 12*time.Second, func() {
			go drip(client, request)
			if got := read(t, bufio.NewReader(client), "GET"); got.status != 408 {
				t.Errorf("a byte a second: %+v", got)
			}
		})
		client.Close()
	})
}

// drip writes one byte a second.
func drip(c net.Conn, s string) {
	for i := range s {
		if _, err := io.WriteString(c, s[i:i+1]); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// between checks how long something takes.
func between(t *testing.T, what string, least, most time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if d := time.Since(began); d < least || d > most {
		t.Errorf("%s lasted %v, want %v to %v", what, d, least, most)
	}
}

// A client that has closed its sending side still gets its answer.
func TestHalfClosed(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one", "large": noise(1, 1<<20)}), testOptions{})
	for _, key := range []string{"a", "large"} {
		c := s.dial(t)
		fmt.Fprintf(c, "GET /db/%s HTTP/1.1\r\nHost: x\r\n\r\n", key)
		expect.NoError(t, c.(*net.TCPConn).CloseWrite())
		if got := read(t, bufio.NewReader(c), "GET"); got.status != 200 || got.length != int64(len(got.body)) {
			t.Errorf("%s: %d, %d bytes", key, got.status, len(got.body))
		}
	}
}

// counting is a connection that counts the calls of its peer's.
type counting struct {
	net.Conn
	reads, deadlines int
}

func (c *counting) Read(p []byte) (int, error) { c.reads++; return c.Conn.Read(p) }
func (c *counting) SetReadDeadline(t time.Time) error {
	c.deadlines++
	return c.Conn.SetReadDeadline(t)
}

func TestConnReadsAhead(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	under := &counting{Conn: near}
	c := newConn(under, newServer(catalogOf(t, nil), testOptions{Timeouts: Timeouts{10 * time.Second, time.Minute, 10 * time.Second}}))
	go func() {
		for i := range 100 {
			fmt.Fprintf(far, "request %02d\r\n\r\n", i)
		}
	}()
	for i := range 100 {
		header := c.fetch()
		if want := fmt.Sprintf("request %02d\r\n\r\n", i); c.err != nil || string(header) != want {
			t.Fatalf("%q, %v; want %q", header, c.err, want)
		}
		c.r += len(header)
	}
	if under.reads != 100 || under.deadlines != 2 { // that of the first, and of idleness

		t.Errorf("100 requests took %d reads and %d deadlines", under.reads, under.deadlines)
	}
	c.since = time.Now().Add(-time.Hour)
	if header := c.fetch(); len(header) > 0 || !errors.Is(c.err, os.ErrDeadlineExceeded) {
		t.Errorf("idle for an hour: %q, %v", header, c.err)
	}
}

func TestConnWritesInChunks(t *testing.T) {
	near, far := net.Pipe()
	c := newConn(near, newServer(catalogOf(t, nil), testOptions{Timeouts: Timeouts{time.Second, time.Second, time.Minute}}))
	value := noise(3, 300<<10)
	go func() {
		defer near.Close()
		if n, err := c.Write([]byte(value)); n != len(value) || err != nil {
			t.Errorf("Write: %d, %v", n, err)
		}
		if n, err := c.Write(nil); n != 0 || err != nil {
			t.Errorf("Write of nothing: %d, %v", n, err)
		}
	}()
	got, err := io.ReadAll(far)
	if err != nil || string(got) != value {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// An error that is sent while the client is still sending reaches the client.
func TestRefusedWhileSending(t *testing.T) {
	s := start(t, catalogOf(t, nil), testOptions{})
	for range 20 {
		c := s.dial(t)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			io.WriteString(c, "GET /db/"+strings.Repeat("k", 700<<10)+" HTTP/1.1\r\nHost: x\r\n\r\n")
		}()
		if got := read(t, bufio.NewReader(c), "GET"); got.status != 431 {
			t.Errorf("%+v", got)
		}
		c.Close()
		<-sent
	}
	expect.Eventually(t, "the connections to be forgotten", func() bool { return s.open.Count() == 0 })
}

// For any division of requests into packets, fetch returns each header whole and separately, up to the
// length of a plain one; net/http reads the rest of a longer one and what follows.
func TestFetchReturnsWholeHeaders(t *testing.T) {
	var requests []string
	for _, n := range []int{0, 10, 4000, 4090 - len("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 3, 5000, 60000, 0} {
		requests = append(requests, "GET /"+strings.Repeat("k", n)+" HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	for _, packet := range []int{1, 7, 1460, 4096, 65536, 1 << 20} {
		near, far := net.Pipe()
		c := newConn(near, newServer(catalogOf(t, nil), testOptions{Timeouts: Timeouts{time.Minute, time.Minute, time.Minute}}))
		go func() {
			defer far.Close()
			for all := "\r\n" + strings.Join(requests, "\r\n"); all != ""; {
				n := min(packet, len(all))
				io.WriteString(far, all[:n])
				all = all[n:]
			}
		}()
		for _, want := range requests[:5] {
			header := c.fetch()
			if c.err != nil || string(header) != want {
				t.Fatalf("in packets of %d: %d bytes of %d, %v", packet, len(header), len(want), c.err)
			}
			c.r += len(header)
		}
		if header := c.fetch(); len(header) < readAhead-2 || c.err != nil {
			t.Fatalf("in packets of %d: %d bytes of a long header, %v", packet, len(header), c.err)
		}
		rest, err := io.ReadAll(c)
		if want := strings.Join(requests[5:], "\r\n"); err != nil || string(rest) != want {
			t.Errorf("in packets of %d: net/http gets %d bytes, want %d; %v", packet, len(rest), len(want), err)
		}
		if c.buf != nil {
			t.Errorf("in packets of %d: %d bytes are kept", packet, len(c.buf))
		}
		near.Close()
	}
}

// For headers of any length and any line ends, every request gets its own answer, or the connection
// ends.
func TestAnswersStayInOrder(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{})
	const follows = "GET /db/a HTTP/1.1\r\nHost: x\r\n\r\n"
	for n := maxHeader - 3; n <= maxHeader+2; n++ {
		for _, end := range []string{"\r\n\r\n", "\r\n\n", "\n\n", "\n\r\n"} {
			head, tail := "GET /db/none", " HTTP/1.1\r\nHost: x"+end
			first := head + strings.Repeat("x", n-len(head)-len(tail)) + tail
			c := s.dial(t)
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				io.WriteString(c, first+follows) //nolint:errcheck // it may be refused before all of it is sent
			}()
			if got := read(t, bufio.NewReader(c), "GET"); got.status < 400 {
				t.Errorf("a header of %d bytes that ends with %q gets %+v", n, end, got)
			}
			c.Close()
			<-sent
		}
	}
}

// A client that sends line ends alone has no more time than others.
func TestEndlessLines(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := newConn(near, newServer(catalogOf(t, nil), testOptions{Timeouts: Timeouts{200 * time.Millisecond, time.Minute, time.Minute}}))
	go func() {
		for chunk := strings.Repeat("\r\n", 1000); ; {
			if _, err := io.WriteString(far, chunk); err != nil {
				return
			}
		}
	}()
	if header := c.fetch(); len(header) > 0 || !errors.Is(c.err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", header, c.err)
	}
}

// A panic while a request is read ends its connection, and not the process.
func TestPanicWhileReading(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), testOptions{})
	s.admit(panickingConn{record("")})
	expect.Eventually(t, "the connection to be closed", func() bool { return s.open.Count() == 0 })
	if got := s.get(t, "/db/a"); got.status != 200 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(s.logs.String(), "panic while reading a request") {
		t.Errorf("logged: %s", s.logs)
	}
}

type panickingConn struct{ *recording }

func (panickingConn) Read([]byte) (int, error) { panic("a bug") }

// What net/http cannot parse gets its text. The beginning of HTTP/2 gets ours.
func TestRefusalsOfNetHTTP(t *testing.T) {
	s := start(t, catalogOf(t, nil), testOptions{})
	for request, want := range map[string]string{
		"GET /db/a HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n":                                "400 Bad Request",
		"GET /db/a HTTP/1.1\r\n\r\n":                                                       "400 Bad Request: missing required Host header",
		"GET /db/a HTTP/9.9\r\nHost: x\r\n\r\n":                                            "505 HTTP Version Not Supported: unsupported protocol version",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                                 "this port speaks HTTP/1.1, and not HTTP/2\n",
		"GET /db/a HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n\r\n": "431 Request Header Fields Too Large",
		"GET /db/a HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n":                            "",
	} {
		got := s.raw(t, "GET", request)
		if got.body != want || got.status < 400 || !got.closed {
			t.Errorf("%.60q: %+v", request, got)
		}
	}
}
