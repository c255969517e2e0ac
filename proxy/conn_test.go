package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/test/expect"
)

// Peers may speak TLS; the client goes on waiting for an answer that a stage's
// end has interrupted.
func TestTLS(t *testing.T) {
	release := make(chan struct{})
	var late sync.Map
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, again := late.LoadOrStore(req.URL.Path, true); !again && strings.HasPrefix(req.URL.Path, "/late") {
			<-release
		}
		w.Header().Set("X-Sequins-Version", "v1")
		w.Header().Set("Content-Length", fmt.Sprint(100<<10))
		io.WriteString(w, strings.Repeat("x", 100<<10))
	}))
	var mu sync.Mutex
	opened := 0
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if state == http.StateNew {
			opened++
		}
	}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert} // or tickets would come with the handshake
	s.StartTLS()
	defer s.Close()
	c := client(t, Options{Timeout: ample, StageTimeout: 50 * time.Millisecond, TLS: s.Client().Transport.(*http.Transport).TLSClientConfig})
	q := &Query{Peers: []string{s.Listener.Addr().String()}, Path: []byte("/db/k"), Version: "v1"}
	for range 20 {
		g, err := fetch(c, q)
		if err != nil || len(g.body) != 100<<10 {
			t.Fatalf("%d bytes, %v", len(g.body), err)
		}
	}
	go func() {
		expect.Eventually(t, "the request to come", func() bool { _, ok := late.Load("/late"); return ok })
		time.Sleep(100 * time.Millisecond)
		close(release)
	}()
	q.Path = []byte("/late")
	if g, err := fetch(c, q); err != nil || len(g.body) != 100<<10 {
		t.Errorf("an answer after the stage's end: %d bytes, %v", len(g.body), err)
	}
	mu.Lock()
	if opened != 1 {
		t.Errorf("%d connections", opened)
	}
	mu.Unlock()
	// One that was opened for a race that is over is used by the next, although
	// the last of the handshake has not been read.
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ClientSessionCache = tls.NewLRUClientSessionCache(1) // asks for tickets
	c = client(t, Options{Timeout: ample, TLS: config})
	p := c.peer(q.Peers[0])
	p.slots <- struct{}{}
	conn, err := p.dial()
	expect.NoError(t, err)
	p.release(conn, true)
	expect.Eventually(t, "the tickets to arrive", func() bool { return !conn.silent() })
	if _, err := fetch(c, q); err != nil {
		t.Error(err)
	}
	mu.Lock()
	if opened != 2 {
		t.Errorf("%d connections", opened)
	}
	mu.Unlock()
	if _, err := fetch(client(t, Options{Timeout: ample, TLS: new(tls.Config)}), q); !errors.Is(err, ErrNoPeers) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a peer with a foreign certificate: %v", err)
	}
}

// What is left over behind an answer is not taken for the next one, also where it
// lies in what TLS has read already.
func TestLeftOver(t *testing.T) {
	cert := httptest.NewTLSServer(nil)
	defer cert.Close()
	config := &tls.Config{Certificates: cert.TLS.Certificates}
	for _, size := range []int{10, 20 << 10, 64 << 10, 100 << 10} {
		n := 0
		echo := func(c net.Conn, req *http.Request) bool {
			n++
			raw := answer(200, strings.Repeat(fmt.Sprint(n), size)) + answer(200, "left over")
			head := strings.Index(raw, "\r\n\r\n") + 4
			io.WriteString(c, raw[:head])
			_, err := io.WriteString(c, raw[head:])
			return err == nil
		}
		for name, o := range map[string]Options{"plain": {}, "TLS": {TLS: cert.Client().Transport.(*http.Transport).TLSClientConfig}} {
			n = 0
			p := listen(t, echo)
			if o.TLS != nil {
				p.tls.Store(config)
			}
			o.Timeout = ample
			c := client(t, o)
			for i := range 3 {
				g, err := fetch(c, query(p))
				if err != nil || g.body != strings.Repeat(fmt.Sprint(i+1), size) {
					t.Errorf("%s, %d: %.50q, %v", name, size, g.body, err)
				}
				if known := c.peer(p.addr); o.TLS == nil && len(known.idle) > 0 {
					expect.Eventually(t, "the rest to arrive", func() bool { return !known.idle[0].silent() })
				}
			}
			if n := p.accepted.Load(); n != 3 {
				t.Errorf("%s, %d: %d connections", name, size, n)
			}
		}
	}
}

// An answer that has arrived when its time is over is not late: it is only this
// node that was.
func TestAnswerThatHasArrived(t *testing.T) {
	for _, length := range []int{2, 3} { // all of it, and less than that
		p := listen(t, says("HTTP/1.1 200 OK\r\nX-Sequins-Version: v1\r\nContent-Length: "+fmt.Sprint(length)+"\r\n\r\nab"))
		known := client(t, Options{}).peer(p.addr)
		known.slots <- struct{}{}
		c, err := known.dial()
		expect.NoError(t, err)
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		expect.NoError(t, c.SetDeadline(time.Unix(1, 0)))
		expect.Eventually(t, "the answer", func() bool { return !c.silent() })
		if err := c.await(); !errors.Is(err, errLate) {
			t.Errorf("after the deadline: %v", err)
		}
		if err := c.awaitRest(); length == 2 && (err != nil || string(c.body) != "ab") || length == 3 && !errors.Is(err, errLate) {
			t.Errorf("%d bytes: %v, %q", length, err, c.body)
		}
		if err := c.awaitRest(); length == 3 && !errors.Is(err, errLate) {
			t.Errorf("nothing more: %v", err)
		}
		c.done()
	}
}

// One Fetch on an open connection allocates once.
func TestFetchAllocations(t *testing.T) {
	near, far := net.Pipe()
	go func() {
		b, value := make([]byte, 4<<10), []byte(answer(200, "value"))
		for {
			if _, err := far.Read(b); err != nil {
				return
			}
			if _, err := far.Write(value); err != nil {
				return
			}
		}
	}()
	defer far.Close()
	o, _ := quiet(Options{Timeout: ample})
	c := newClient(o, func(context.Context, string) (net.Conn, error) { return withoutDeadlines{near}, nil })
	defer c.Close()
	q := &Query{Peers: []string{"a"}, Path: []byte("/db/k"), Version: "v1"}
	n := testing.AllocsPerRun(1000, func() {
		a, err := c.Fetch(context.Background(), q)
		expect.NoError(t, err)
		a.Body.Close()
	})
	if limit := 1.0; n > limit && !raceEnabled {
		t.Errorf("%v allocations", n)
	}
}

// withoutDeadlines is a pipe on which setting one costs nothing, as on a socket.
type withoutDeadlines struct{ net.Conn }

func (withoutDeadlines) SetDeadline(time.Time) error { return nil }
