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

	"github.com/valyala/fasthttp"
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

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	a, b := net.Pipe()
	p.conns <- a
	return b
}

// inBubble serves pipes on a clock that a test can turn.
func inBubble(t *testing.T, c Catalog, o Options, test func(s *Server, dial func() net.Conn)) {
	t.Helper()
	_ = new(fasthttp.ResponseHeader).String() // starts a goroutine for good, which must not be in the bubble
	synctest.Test(t, func(t *testing.T) {
		ln := &pipes{make(chan net.Conn), make(chan struct{})}
		s := New(c, o)
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
	o := Options{Timeouts: Timeouts{Read: 10 * time.Second, Idle: time.Minute, Write: 30 * time.Second}}
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
		for _, sent := range []string{"G", request[:20], "GET /db/" + strings.Repeat("k", 5000)} {
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

// A client that has said all it has to say still gets its answer.
func TestHalfClosed(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one", "large": noise(1, 1<<20)}), Options{})
	for _, key := range []string{"a", "large"} {
		c := s.dial(t)
		fmt.Fprintf(c, "GET /db/%s HTTP/1.1\r\nHost: x\r\n\r\n", key)
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
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
	c := newConn(under, New(catalogOf(t, nil), Options{Timeouts: Timeouts{10 * time.Second, time.Minute, 10 * time.Second}}))
	go func() {
		for i := range 100 {
			fmt.Fprintf(far, "request %02d\r\n\r\n", i)
		}
	}()
	for i := range 100 {
		p := make([]byte, 100)
		if n, err := c.Read(p[:1]); n != 1 || err != nil {
			t.Fatalf("the first byte: %d, %v", n, err)
		}
		n, err := c.Read(p[1:])
		if want := fmt.Sprintf("request %02d\r\n\r\n", i); err != nil || string(p[:1+n]) != want {
			t.Fatalf("%q, %v; want %q", p[:1+n], err, want)
		}
		c.unhandled = false
	}
	if under.reads != 100 || under.deadlines != 2 { // that of the first, and of idleness

		t.Errorf("100 requests took %d reads and %d deadlines", under.reads, under.deadlines)
	}
	c.since = time.Now().Add(-time.Hour)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("idle for an hour: %v", err)
	}
}

func TestConnWritesInChunks(t *testing.T) {
	near, far := net.Pipe()
	c := newConn(near, New(catalogOf(t, nil), Options{Timeouts: Timeouts{time.Second, time.Second, time.Minute}}))
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

// What is refused while the client still sends gets to the client all the same.
func TestRefusedWhileSending(t *testing.T) {
	s := start(t, catalogOf(t, nil), Options{})
	for range 20 {
		c := s.dial(t)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			io.WriteString(c, "GET /db/"+strings.Repeat("k", 700<<10)+" HTTP/1.1\r\nHost: x\r\n\r\n")
		}()
		if got := read(t, bufio.NewReader(c), "GET"); got.status != 414 {
			t.Errorf("%+v", got)
		}
		c.Close()
		<-sent
	}
	eventually(t, "the connections to be forgotten", func() bool { return s.open.count() == 0 })
}

// However requests are cut into packets, each is given out by itself, whole,
// and the memory for a long one does not stay.
func TestConnGivesOutWholeHeaders(t *testing.T) {
	var requests []string
	for _, n := range []int{0, 10, 4000, 4090, 5000, 60000, 200000, 3, 100000, 0} {
		requests = append(requests, "GET /"+strings.Repeat("k", n)+" HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	for _, packet := range []int{1, 7, 1460, 4096, 65536, 1 << 20} {
		near, far := net.Pipe()
		c := newConn(near, New(catalogOf(t, nil), Options{Timeouts: Timeouts{time.Minute, time.Minute, time.Minute}}))
		go func() {
			defer far.Close()
			for all := "\r\n" + strings.Join(requests, "\r\n"); all != ""; {
				n := min(packet, len(all))
				io.WriteString(far, all[:n])
				all = all[n:]
			}
		}()
		p := make([]byte, maxHeader)
		for _, want := range requests {
			n, err := c.Read(p[:1])
			for err == nil && n < len(want) {
				var m int
				m, err = c.Read(p[n:])
				n += m
			}
			if err != nil || string(p[:n]) != want {
				t.Fatalf("in packets of %d: %d bytes of %d, %v", packet, n, len(want), err)
			}
			if _, err := c.Read(p); !errors.Is(err, errNoMore) {
				t.Fatalf("in packets of %d: more than a header: %v", packet, err)
			}
			c.unhandled = false
		}
		if _, err := c.Read(p[:1]); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) { // a pipe's word for setting a deadline then
			t.Errorf("in packets of %d: at the end: %v", packet, err)
		}
		if len(c.buf) != readAhead {
			t.Errorf("in packets of %d: %d bytes are kept", packet, len(c.buf))
		}
		near.Close()
	}
}

// Whatever length a header has and however its lines end, every request gets its
// own answer, or the connection ends.
func TestAnswersStayInOrder(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one"}), Options{})
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

// A client that has more to send than a header may have is not listened to for
// ever, whatever it sends.
func TestConnIsBounded(t *testing.T) {
	for name, endless := range map[string]string{"line": "x", "headers": "x\r\n", "empty lines": "\r\n"} {
		near, far := net.Pipe()
		timeouts := Timeouts{time.Minute, time.Minute, time.Minute}
		if name == "empty lines" { // of which there may be any number, but not for any time
			timeouts.Read = 200 * time.Millisecond
		}
		c := newConn(near, New(catalogOf(t, nil), Options{Timeouts: timeouts}))
		go func() {
			for chunk := strings.Repeat(endless, 1000); ; {
				if _, err := io.WriteString(far, chunk); err != nil {
					return
				}
			}
		}()
		_, err := c.Read(make([]byte, 1))
		if want := name == "empty lines"; errors.Is(err, os.ErrDeadlineExceeded) != want || (err == nil) == want {
			t.Errorf("endless %s: %v", name, err)
		}
		if len(c.buf) > maxHeader+readAhead {
			t.Errorf("endless %s: %d bytes are held", name, len(c.buf))
		}
		near.Close()
		far.Close()
	}
}
