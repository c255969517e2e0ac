package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sequins/test/expect"
)

// However many requests there are, there is a connection for each caller at
// most, and every caller gets its own answer.
func TestConnectionsAreKept(t *testing.T) {
	echo := func(c net.Conn, req *http.Request) bool {
		body := req.URL.Path
		if strings.HasSuffix(body, "0") {
			body = strings.Repeat(body, 20<<10)
		}
		_, err := io.WriteString(c, answer(200, body))
		return err == nil
	}
	peers := []*fakePeer{listen(t, echo), listen(t, echo)}
	c := client(t, Options{Timeout: ample})
	const callers, each = 8, 300
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				q := query(peers...)
				q.Path = fmt.Appendf(nil, "/db/%d-%d", i, j)
				g, err := fetch(c, q)
				want := string(q.Path)
				if j%10 == 0 {
					want = strings.Repeat(want, 20<<10)
				}
				if err != nil || g.body != want {
					t.Errorf("%s: %.100q, %v", q.Path, g.body, err)
				}
			}
		})
	}
	wg.Wait()
	total := int64(0)
	for _, p := range peers {
		n := p.accepted.Load()
		if n > callers {
			t.Errorf("%d connections to one peer for %d callers", n, callers)
		}
		total += n
	}
	if n := number(c.metrics, "sequins_proxy_connections_opened_total"); int64(n) != total {
		t.Errorf("%v connections are counted of %d", n, total)
	}
	if n := number(c.metrics, "sequins_proxy_connections"); n > 2*callers {
		t.Errorf("%v connections are open", n)
	}
}

// An idle connection keeps no more than its own buffers of a large request and
// answer.
func TestIdleConnectionsAreSmall(t *testing.T) {
	p := listen(t, says(answer(200, strings.Repeat("x", maxWhole))))
	c := client(t, Options{Timeout: ample})
	q := query(p)
	q.Path = []byte("/db/" + strings.Repeat("k", 64<<10))
	if _, err := fetch(c, q); err != nil {
		t.Fatal(err)
	}
	idle := c.peer(p.addr).idle[0]
	if n := cap(idle.out) + cap(idle.buf) + cap(idle.body); n > 2*readBuffer || idle.large != nil {
		t.Errorf("it keeps %d bytes", n)
	}
}

// A peer that has restarted is asked on a new connection, and is not blamed,
// also if the end of the old one is only seen after the request was sent.
func TestPeerRestarts(t *testing.T) {
	o, l := quiet(Options{Timeout: ample})
	c := New(o)
	defer c.Close()
	p := listen(t, says(answer(200, "x")))
	ends := []func(net.Conn){
		func(c net.Conn) { c.Close() },
		func(c net.Conn) { // with a reset
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		},
		func(c net.Conn) { io.WriteString(c, answer(200, "not asked for")) },
	}
	for i := range 9 {
		if g, err := fetch(c, query(p)); err != nil || g.body != "x" {
			t.Fatal(g, err)
		}
		if n := p.accepted.Load(); n != int64(i+1) {
			t.Errorf("%d connections, want %d", n, i+1)
		}
		p.mu.Lock()
		for conn := range p.conns {
			ends[i%3](conn)
		}
		p.mu.Unlock()
		idle := c.peer(p.addr).idle[0]
		expect.Eventually(t, "the news to arrive", func() bool { return !idle.usable() })
	}
	if got := numbers(o.Metrics, "sequins_proxy_attempts_total", "stage", "outcome")["1 error"]; got != 0 {
		t.Errorf("%v errors", got)
	}
	if l.String() != "" {
		t.Errorf("logged: %s", l)
	}

	// Pipes cannot be looked into: they fail when they are used.
	for _, warm := range []int{1, 3} {
		inWorld(t, 1, func(w *world) {
			w.peers[0].set(after(time.Millisecond, says(answer(200, "a"))))
			var wg sync.WaitGroup
			for range warm {
				wg.Go(func() { fetch(w.Client, query(w.peers[0])) })
			}
			wg.Wait()
			w.peers[0].cut(false)
			synctest.Wait()
			w.wantFrom(0, time.Millisecond)
			if got := w.counted()["1 error"]; got != 0 || w.logs.String() != "" {
				t.Errorf("%d errors, %s", got, w.logs)
			}
			// Once a new one fails the same way it counts.
			w.peers[0].set(breaks)
			if _, err := w.ask(0); !errors.Is(err, ErrNoPeers) {
				t.Error(err)
			}
			if w.counted()["1 error"] != 1 || !strings.Contains(w.logs.String(), "peer=a") {
				t.Errorf("%v, %s", w.counted(), w.logs)
			}
		})
	}
}

// The connections to one peer are limited; a request that needs another one waits.
func TestMaxConnsPerPeer(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		p := w.peers[0]
		p.set(after(10*time.Millisecond, says(answer(200, "a"))))
		w.maxConns = 3
		for range 2 {
			begun := time.Now()
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					if _, err := fetch(w.Client, query(p)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if d := time.Since(begun); d != 40*time.Millisecond {
				t.Errorf("10 requests took %v", d)
			}
		}
		if n := p.accepted.Load(); n != 3 {
			t.Errorf("%d connections", n)
		}
		p.set(hangs)
		for range 10 {
			go func() {
				if _, err := fetch(w.Client, query(p)); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}()
		}
		time.Sleep(raceTime + 1)
		synctest.Wait()
		if n := p.asked.Load(); n != 23 {
			t.Errorf("%d requests", n)
		}
		if n := w.inFlight(); n != 0 {
			t.Errorf("%v attempts wait for ever", n)
		}
	})
}

// Idle connections are closed after a while.
func TestIdle(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.warm()
		time.Sleep(idleTime / 2)
		w.first(0)
		w.wantFrom(0, 0)
		time.Sleep(idleTime * 7 / 8)
		synctest.Wait()
		if a, b := idle(w.peer("a")), idle(w.peer("b")); a != 1 || b != 0 {
			t.Errorf("%d and %d connections are idle", a, b)
		}
		time.Sleep(idleTime / 2)
		if n := number(w.metrics, "sequins_proxy_connections"); n != 0 {
			t.Errorf("%v connections are open", n)
		}
		w.wantFrom(slices.IndexFunc(w.peers, func(p *fakePeer) bool { return p.addr == w.mustAsk() }), 0)
	})
}

// idle counts the connections of a peer that wait to be used.
func idle(p *peer) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// mustAsk asks once, and then has only that peer be asked.
func (w *world) mustAsk() string {
	w.Helper()
	g, err := fetch(w.Client, query(w.peers...))
	expect.NoError(w, err)
	for i, p := range w.peers {
		if p.addr == g.peer {
			w.first(i)
		}
	}
	return g.peer
}

func TestClose(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	inWorld(t, 2, func(w *world) {
		w.warm()
		w.peers[0].set(says(answer(200, large)))
		w.first(0)
		a, err := w.Fetch(context.Background(), query(w.peers...))
		expect.NoError(t, err)
		for _, p := range w.peers {
			p.set(hangs)
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := fetch(w.Client, query(w.peers...)); err == nil {
					t.Error("an answer")
				}
			})
		}
		time.Sleep(stageTime / 2)
		begun := time.Now()
		w.Close()
		wg.Wait()
		if d := time.Since(begun); d != 0 {
			t.Errorf("closing took %v", d)
		}
		if n, err := io.Copy(io.Discard, a.Body); err == nil {
			t.Errorf("read %d bytes after Close", n)
		}
		a.Body.Close()
		if _, err := w.ask(0); !errors.Is(err, ErrNoPeers) {
			t.Error(err)
		}
		if got := w.logs.String(); got != "" {
			t.Errorf("logged: %s", got)
		}
	})
}

// A connection is used again however the answer was cut on its way: in the
// header, in the body, or between the two.
func TestReuseAtEveryCut(t *testing.T) {
	for _, size := range []int{0, 1, 300, readBuffer - 100, readBuffer + 100, maxWhole, maxWhole + 1, prefixSize + 5000} {
		raw := answer(200, strings.Repeat("x", size))
		head := len(raw) - size
		cuts := []int{head + size/2, readBuffer - 1, readBuffer, readBuffer + 1, head + prefixSize, len(raw) - 1}
		for cut := range min(len(raw), head+300) {
			cuts = append(cuts, cut)
		}
		inWorld(t, 1, func(w *world) {
			asked := 0
			for _, cut := range cuts {
				cut = min(cut, len(raw))
				// Writing to a pipe returns when all of it has been read.
				w.peers[0].set(func(c net.Conn, _ *http.Request) bool {
					for _, part := range []string{raw[:cut], raw[cut:]} {
						if part == "" {
							continue
						}
						if _, err := io.WriteString(c, part); err != nil {
							return false
						}
					}
					return true
				})
				if g, err := fetch(w.Client, query(w.peers[0])); err != nil || len(g.body) != size {
					t.Errorf("%d bytes cut at %d: %d, %v", size, cut, len(g.body), err)
				}
				asked++
			}
			if n := w.peers[0].accepted.Load(); n != 1 {
				t.Errorf("%d connections for %d answers of %d bytes", n, asked, size)
			}
		})
	}
}

// The same where TLS makes two records of header and body.
func TestReuseWithTLS(t *testing.T) {
	cert := httptest.NewTLSServer(nil)
	defer cert.Close()
	raw := answer(200, strings.Repeat("x", 6<<10))
	head := len(raw) - 6<<10
	p := listen(t, func(c net.Conn, _ *http.Request) bool {
		io.WriteString(c, raw[:head])
		_, err := io.WriteString(c, raw[head:])
		return err == nil
	})
	p.tls.Store(&tls.Config{Certificates: cert.TLS.Certificates})
	c := client(t, Options{Timeout: ample, TLS: cert.Client().Transport.(*http.Transport).TLSClientConfig})
	for range 200 {
		if g, err := fetch(c, query(p)); err != nil || len(g.body) != 6<<10 {
			t.Fatal(len(g.body), err)
		}
	}
	if n := p.accepted.Load(); n != 1 {
		t.Errorf("%d connections for 200 answers", n)
	}
}

// Values that are read slowly do not block other requests: small reads have their own connections,
// and a value beyond the limit is requested from another peer.
func TestStreamsHaveTheirOwnSlots(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		large := answer(200, strings.Repeat("x", 1<<20))
		do := func(c net.Conn, req *http.Request) bool {
			raw := answer(200, "small")
			if req.URL.Path == "/db/large" {
				raw = large
			}
			return says(raw)(c, req)
		}
		for _, p := range w.peers {
			p.set(do)
		}
		w.maxConns, w.maxStreams = 2, 3
		q := query(w.peers...)
		q.Path = []byte("/db/large")
		var open []*Answer
		for range 6 {
			answer, err := w.Fetch(context.Background(), q)
			expect.NoError(t, err)
			open = append(open, answer)
		}
		if _, err := w.Fetch(context.Background(), q); !errors.Is(err, ErrNoPeers) || !strings.Contains(err.Error(), errBusy.Error()) {
			t.Errorf("a seventh: %v", err)
		}
		for range 20 {
			begun := time.Now()
			if g, err := fetch(w.Client, query(w.peers[0])); err != nil || g.body != "small" || time.Since(begun) != 0 {
				t.Errorf("a small value: %+v, %v after %v", g, err, time.Since(begun))
			}
		}
		for _, answer := range open {
			if n, err := io.Copy(io.Discard, answer.Body); n != 1<<20 || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
			answer.Body.Close()
		}
		if a, b := len(w.peer("a").slots)+len(w.peer("a").streams), len(w.peer("b").slots)+len(w.peer("b").streams); a+b != 0 || w.logs.String() != "" {
			t.Errorf("%d and %d slots are taken in the end; logged: %s", a, b, w.logs)
		}
	})
}

// A client that reads a value too slowly loses it, and its connection.
func TestLeastRate(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.peers[0].set(says(answer(200, strings.Repeat("x", 24<<20))))
		a, err := w.Fetch(context.Background(), query(w.peers...))
		expect.NoError(t, err)
		begun, piece := time.Now(), make([]byte, 16<<10)
		for err == nil {
			time.Sleep(time.Second)
			_, err = io.ReadFull(a.Body, piece)
		}
		if d := time.Since(begun); !errors.Is(err, ErrSlow) || d < 2*rateGrace || d > 3*rateGrace {
			t.Errorf("16 KiB a second: %v after %v", err, d)
		}
		a.Body.Close()
	})
}

// A peer that sends a value too slowly loses it: that is no fault of the client.
func TestLeastRateOfAPeer(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		raw := answer(200, strings.Repeat("x", 24<<20))
		w.peers[0].set(func(c net.Conn, _ *http.Request) bool {
			n, err := io.WriteString(c, raw[:128<<10])
			for ; err == nil; n += 4 << 10 {
				time.Sleep(time.Second)
				_, err = io.WriteString(c, raw[n:n+4<<10])
			}
			return false
		})
		a, err := w.Fetch(context.Background(), query(w.peers...))
		expect.NoError(t, err)
		begun := time.Now()
		_, err = io.Copy(io.Discard, a.Body)
		if d := time.Since(begun); !errors.Is(err, errLate) || errors.Is(err, ErrSlow) || d < rateGrace || d > 2*rateGrace {
			t.Errorf("4 KiB a second: %v after %v", err, d)
		}
		a.Body.Close()
	})
}

// A peer that fails before the prefix of its body is complete loses to another one.
func TestPeerFailsInThePrefix(t *testing.T) {
	raw := answer(200, strings.Repeat("x", 1<<20))
	inWorld(t, 2, func(w *world) {
		w.peers[1].set(says(raw))
		for _, n := range []int{len(raw) - 1<<20, 10 << 10, prefixSize - 1} {
			w.peers[0].set(func(c net.Conn, _ *http.Request) bool {
				io.WriteString(c, raw[:n])
				return false
			})
			w.first(0)
			if g, err := w.ask(0); err != nil || len(g.body) != 1<<20 || g.peer != "b" {
				t.Errorf("after %d bytes: %d bytes from %q, %v", n, len(g.body), g.peer, err)
			}
		}
	})
}
