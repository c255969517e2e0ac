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
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
	c := client(t, Options{Timeout: 10 * time.Second})
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
	c := client(t, Options{Timeout: 10 * time.Second})
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
	o, l := quiet(Options{})
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
		eventually(t, "the news to arrive", func() bool { return !idle.usable() })
	}
	if got := numbers(o.Metrics, "sequins_proxy_attempts_total")["1 error"]; got != 0 {
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

// One peer gets so many connections and no more; who needs another one waits.
func TestMaxConnsPerPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFake("a", after(10*time.Millisecond, says(answer(200, "a"))))
		pipes := newPipes(p)
		o, _ := quiet(Options{Timeout: raceTime, StageTimeout: stageTime, MaxConnsPerPeer: 3})
		c := newClient(o, pipes.dial)
		for range 2 {
			begun := time.Now()
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					if _, err := fetch(c, query(p)); err != nil {
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
				if _, err := fetch(c, query(p)); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}()
		}
		time.Sleep(raceTime + 1)
		synctest.Wait()
		if n := p.asked.Load(); n != 23 {
			t.Errorf("%d requests", n)
		}
		// Who waits goes with its race, also if the connections stay in use.
		p.set(says(answer(200, strings.Repeat("x", 1<<20))))
		for range 3 {
			a, err := c.Fetch(context.Background(), query(p))
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
		}
		if _, err := fetch(c, query(p)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		if n := number(o.Metrics, "sequins_proxy_attempts_in_flight"); n != 0 {
			t.Errorf("%v attempts wait for ever", n)
		}
		c.Close()
		pipes.stop()
	})
}

// What is idle is closed in the end, and a peer that nobody asks is forgotten.
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
		old := w.peer("a")
		time.Sleep(forgetTime * 3 / 4)
		if len(*w.Client.peers.Load()) != 2 {
			t.Error("a peer was forgotten early")
		}
		time.Sleep(forgetTime / 2)
		if n := len(*w.Client.peers.Load()); n != 0 {
			t.Errorf("%d peers are remembered", n)
		}
		// Somebody may still hold one.
		old.slots <- struct{}{}
		c, err := old.dial()
		if err != nil {
			t.Fatal(err)
		}
		old.release(c, true)
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
	if err != nil {
		w.Fatal(err)
	}
	for i, p := range w.peers {
		if p.addr == g.peer {
			w.first(i)
		}
	}
	return g.peer
}

// Those that are well are asked equally often, those that fail after them, but
// for one request a second.
func TestOrder(t *testing.T) {
	inWorld(t, 4, func(w *world) {
		w.warm()
		count := func(n int) map[string]int {
			from := map[string]int{}
			for range n {
				g, err := fetch(w.Client, query(w.peers...))
				if err != nil {
					t.Fatal(err)
				}
				from[g.peer]++
			}
			return from
		}
		const many = 2000
		for name, n := range count(many) {
			if n < many/4*8/10 || n > many/4*12/10 {
				t.Errorf("%d of %d requests went to %s", n, many, name)
			}
		}
		asked := func() int64 { return w.peers[0].asked.Load() }
		w.peers[0].set(breaks)
		before := asked()
		count(many)
		if n := asked() - before; n != 2 { // on the old connection and on a new one
			t.Errorf("a peer that breaks was asked %d times", n)
		}
		if got := w.logs.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "peer=a") || !strings.Contains(got, "the connection ended without an answer") {
			t.Errorf("logged: %s", got)
		}
		for range 5 {
			before := asked()
			time.Sleep(retryTime)
			count(many)
			if n := asked() - before; n != 1 {
				t.Errorf("a peer that breaks was asked %d times in a second", n)
			}
		}
		w.peers[0].set(says(answer(200, "a")))
		time.Sleep(retryTime)
		if n := count(many)["a"]; n < many/4*8/10 {
			t.Errorf("a peer that is well again was asked %d times of %d", n, many)
		}
		if got := w.logs.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "well again") {
			t.Errorf("logged: %s", got)
		}
		// So is one that always answers with an error.
		w.peers[0].set(says(answer(500, "")))
		before = asked()
		count(many)
		if n := asked() - before; n < 2 || n > 4 {
			t.Errorf("a peer that answers with errors was asked %d times", n)
		}
		w.peers[0].set(says(answer(200, "a")))
		time.Sleep(retryTime)
		count(100)
		// One that hangs costs a stage's time a few times, and then once a second.
		w.peers[0].set(hangs)
		begun := time.Now()
		count(many)
		if d := time.Since(begun); d > 4*stageTime {
			t.Errorf("a peer that hangs has cost %v", d)
		}
		// When all fail all are still asked.
		for _, p := range w.peers {
			p.set(hangs)
		}
		w.ask(raceTime)
		for _, p := range w.peers {
			w.Client.peer(p.addr).failed(errDown)
			p.set(says(answer(200, p.addr)))
		}
		count(10)
	})
}

// A peer that is always slow is one that fails, one that is slow at times is not.
func TestSlowPeers(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		p := w.peer("a")
		for _, slow := range []int{1, 1, 0, 1, 0, 0, 1} {
			if slow == 1 {
				p.observe(stageTime, errLate)
			} else {
				p.observe(0, errLate)
			}
			if p.failing(time.Now()) {
				t.Error("a peer that is slow at times is failing")
			}
		}
		w.peers[0].set(after(stageTime*3/4, says(answer(200, "a"))))
		for range 10 {
			w.wantFrom(0, stageTime*3/4)
		}
		if !p.failing(time.Now()) {
			t.Error("a peer that is always slow is not failing")
		}
		time.Sleep(retryTime)
		if now := time.Now(); p.failing(now) || !p.failing(now) {
			t.Error("a peer that is failing is not tried by exactly one")
		}
	})
}

// So is one that hangs, after three requests, also on connections that are open.
func TestHangingPeer(t *testing.T) {
	for _, open := range []int{0, 3} {
		inWorld(t, 2, func(w *world) {
			w.peers[0].set(after(time.Millisecond, says(answer(200, "a"))))
			var wg sync.WaitGroup
			for range open {
				wg.Go(func() { fetch(w.Client, query(w.peers[0])) })
			}
			wg.Wait()
			w.peers[0].set(hangs)
			p := w.peer("a")
			for range 3 {
				if p.failing(time.Now()) {
					t.Error("it is failing early")
				}
				cost := p.cost.Load()
				w.first(0)
				p.cost.Store(cost)
				w.wantFrom(1, stageTime)
			}
			if !p.failing(time.Now()) {
				t.Errorf("%d open connections: it is not failing", open)
			}
		})
	}
}

func TestClose(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	inWorld(t, 2, func(w *world) {
		w.warm()
		w.peers[0].set(says(answer(200, large)))
		w.first(0)
		a, err := w.Fetch(context.Background(), query(w.peers...))
		if err != nil {
			t.Fatal(err)
		}
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

// A peer that refuses connections or fails at once adds less than 5 ms.
func TestFailureIsCheap(t *testing.T) {
	good := listen(t, says(answer(200, "good")))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	refusing := &fakePeer{addr: ln.Addr().String()}
	for name, bad := range map[string]*fakePeer{"refuses": refusing, "breaks": listen(t, breaks), "500": listen(t, says(answer(500, ""))), "501": listen(t, says(answer(501, "")))} {
		c := client(t, Options{Timeout: 20 * time.Second})
		if _, err := fetch(c, query(good)); err != nil {
			t.Fatal(err)
		}
		var times []time.Duration
		for range 51 {
			c.peer(good.addr).failed(errDown) // so that the bad one is asked first
			c.peer(good.addr).retryAt.Store(1 << 62)
			c.peer(bad.addr).cost.Store(0)
			begun := time.Now()
			if g, err := fetch(c, query(bad, good)); err != nil || g.body != "good" {
				t.Fatal(g, err)
			}
			times = append(times, time.Since(begun))
		}
		slices.Sort(times)
		t.Logf("%s: median %v", name, times[len(times)/2])
		if d := times[len(times)/2]; d > 5*time.Millisecond {
			t.Errorf("a peer that %s adds %v", name, d)
		}
	}
}

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
	c := client(t, Options{Timeout: 10 * time.Second, StageTimeout: 50 * time.Millisecond, TLS: s.Client().Transport.(*http.Transport).TLSClientConfig})
	q := &Query{Peers: []string{s.Listener.Addr().String()}, Path: []byte("/db/k"), Version: "v1"}
	for range 20 {
		g, err := fetch(c, q)
		if err != nil || len(g.body) != 100<<10 {
			t.Fatalf("%d bytes, %v", len(g.body), err)
		}
	}
	go func() {
		eventually(t, "the request to come", func() bool { _, ok := late.Load("/late"); return ok })
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
	c = client(t, Options{Timeout: 10 * time.Second, TLS: config})
	p := c.peer(q.Peers[0])
	p.slots <- struct{}{}
	conn, err := p.dial()
	if err != nil {
		t.Fatal(err)
	}
	p.release(conn, true)
	eventually(t, "the tickets to arrive", func() bool { return !conn.silent() })
	if _, err := fetch(c, q); err != nil {
		t.Error(err)
	}
	mu.Lock()
	if opened != 2 {
		t.Errorf("%d connections", opened)
	}
	mu.Unlock()
	if _, err := fetch(client(t, Options{Timeout: 10 * time.Second, TLS: new(tls.Config)}), q); !errors.Is(err, ErrNoPeers) || !strings.Contains(err.Error(), "certificate") {
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
			o.Timeout = 10 * time.Second
			c := client(t, o)
			for i := range 3 {
				g, err := fetch(c, query(p))
				if err != nil || g.body != strings.Repeat(fmt.Sprint(i+1), size) {
					t.Errorf("%s, %d: %.50q, %v", name, size, g.body, err)
				}
				if known := c.peer(p.addr); o.TLS == nil && len(known.idle) > 0 {
					eventually(t, "the rest to arrive", func() bool { return !known.idle[0].silent() })
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
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := c.until(time.Unix(1, 0), 0); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the answer", func() bool { return !c.silent() })
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
	o, _ := quiet(Options{Timeout: 10 * time.Second})
	c := newClient(o, func(context.Context, string) (net.Conn, error) { return withoutDeadlines{near}, nil })
	defer c.Close()
	q := &Query{Peers: []string{"a"}, Path: []byte("/db/k"), Version: "v1"}
	n := testing.AllocsPerRun(1000, func() {
		a, err := c.Fetch(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
	})
	if limit := 1.0; n > limit && !raceEnabled {
		t.Errorf("%v allocations", n)
	}
}

// withoutDeadlines is a pipe on which setting one costs nothing, as on a socket.
type withoutDeadlines struct{ net.Conn }

func (withoutDeadlines) SetDeadline(time.Time) error { return nil }
