package proxy

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/observe/metrics"
	"sequins/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// behaviour is what a peer does with a request. The connection ends when it
// returns false.
type behaviour func(c net.Conn, req *http.Request) bool

type fakePeer struct {
	addr     string
	do       atomic.Pointer[behaviour]
	tls      atomic.Pointer[tls.Config] // spoken if not nil; only by TCP
	accepted atomic.Int64
	asked    atomic.Int64
	down     atomic.Bool  // refuses connections; only by pipes
	lag      atomic.Int64 // nanoseconds until a connection is there; only by pipes

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  bool
}

func (p *fakePeer) set(b behaviour) { p.do.Store(&b) }

// serve answers the requests of one connection.
func (p *fakePeer) serve(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	if p.done {
		p.mu.Unlock()
		return
	}
	p.conns[c] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
	}()
	p.accepted.Add(1)
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		p.asked.Add(1)
		if !(*p.do.Load())(c, req) {
			return
		}
	}
}

// cut closes all connections.
func (p *fakePeer) cut(forGood bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = p.done || forGood
	for c := range p.conns {
		c.Close()
	}
}

func newFake(addr string, b behaviour) *fakePeer {
	p := &fakePeer{addr: addr, conns: map[net.Conn]bool{}}
	p.set(b)
	return p
}

// listen starts a peer on TCP, until the end of the test.
func listen(t testing.TB, b behaviour) *fakePeer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	p := newFake(ln.Addr().String(), b)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			if config := p.tls.Load(); config != nil {
				c = tls.Server(c, config)
			}
			wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		p.cut(true)
		wg.Wait()
	})
	return p
}

// pipes are peers that are reached by pipes.
type pipes struct {
	peers map[string]*fakePeer
	wg    sync.WaitGroup
}

func newPipes(peers ...*fakePeer) *pipes {
	p := &pipes{peers: map[string]*fakePeer{}}
	for _, peer := range peers {
		p.peers[peer.addr] = peer
	}
	return p
}

var errDown = errors.New("connection refused")

func (p *pipes) dial(ctx context.Context, addr string) (net.Conn, error) {
	peer := p.peers[addr]
	if lag := time.Duration(peer.lag.Load()); lag > 0 {
		select {
		case <-time.After(lag):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if peer.down.Load() {
		return nil, errDown
	}
	near, far := net.Pipe()
	p.wg.Go(func() { peer.serve(far) })
	return near, nil
}

// stop ends everything that runs.
func (p *pipes) stop() {
	for _, peer := range p.peers {
		peer.cut(true)
	}
	p.wg.Wait()
}

// answer renders an answer from version v1.
func answer(status int, body string, fields ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nX-Sequins-Version: v1\r\nContent-Length: %d\r\n", status, http.StatusText(status), len(body))
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	return b.String() + "\r\n" + body
}

// says sends the same bytes to everybody.
func says(raw string) behaviour {
	return func(c net.Conn, _ *http.Request) bool {
		_, err := io.WriteString(c, raw)
		return err == nil
	}
}

// after waits first.
func after(d time.Duration, b behaviour) behaviour {
	return func(c net.Conn, req *http.Request) bool {
		time.Sleep(d)
		return b(c, req)
	}
}

// hangs never answers; it ends with the connection.
func hangs(c net.Conn, _ *http.Request) bool {
	io.Copy(io.Discard, c)
	return false
}

// breaks closes the connection.
func breaks(net.Conn, *http.Request) bool { return false }

// quiet are options for tests.
func quiet(o Options) (Options, *expect.Output) {
	l := new(expect.Output)
	o.Logger = l.Logger()
	o.Timeout = cmp.Or(o.Timeout, 100*time.Millisecond)
	o.StageTimeout = cmp.Or(o.StageTimeout, o.Timeout/2)
	if o.Upstream == nil {
		o.Upstream = func(string) bool { return true }
	}
	if o.Metrics == nil {
		m := metrics.New()
		o.Metrics = m.Proxy
		registries.Store(m.Proxy, m.Registry())
	}
	return o, l
}

// client is one that is closed at the end of the test.
func client(t testing.TB, o Options) *Client {
	t.Helper()
	o, _ = quiet(o)
	c := New(o)
	t.Cleanup(c.Close)
	return c
}

// query asks some peers for /db/k in v1.
func query(peers ...*fakePeer) *Query {
	q := &Query{Path: []byte("/db/k"), Version: "v1"}
	for _, p := range peers {
		q.Peers = append(q.Peers, p.addr)
	}
	return q
}

// got is an answer that has been read.
type got struct {
	peer   string
	status int
	body   string
	length int64
	value  bool
	header map[string]string
}

func fetch(c *Client, q *Query) (got, error) {
	a, err := c.Fetch(context.Background(), q)
	if err != nil {
		return got{}, err
	}
	defer a.Body.Close()
	g := got{peer: a.Peer, status: a.Status, length: a.Length, value: a.Value != nil, header: map[string]string{}}
	for name, v := range map[string][]byte{"Version": a.Header.Version, "Content": a.Header.Content, "Content-Type": a.Header.ContentType, "ETag": a.Header.ETag,
		"Last-Modified": a.Header.LastModified, "Content-Range": a.Header.ContentRange, "Accept-Ranges": a.Header.AcceptRanges} {
		if v != nil {
			g.header[name] = string(v)
		}
	}
	value := string(a.Value)
	body, err := io.ReadAll(a.Body)
	if g.value && value != string(body) {
		err = fmt.Errorf("the value is %q, the body %q", value, body)
	}
	g.body = string(body)
	return g, err
}

// ample is how long something may take that has to happen, on a busy machine.
const ample = time.Minute

// An answer must name the content that was asked for. Without a name it is taken from nodes that may be of upstream's kind only.
func TestContentOfAnswers(t *testing.T) {
	mine, other := []string{"X-Sequins-Content: mine"}, []string{"X-Sequins-Content: other"}
	for _, test := range []struct {
		asked    string
		named    []string
		upstream func(string) bool
		taken    bool
	}{
		{"mine", mine, nil, true},
		{"mine", other, nil, false},
		{"mine", nil, nil, true},
		{"mine", nil, func(string) bool { return true }, true},
		{"mine", nil, func(string) bool { return false }, false},
		{"mine", mine, func(string) bool { return false }, true},
		{"", nil, func(string) bool { return false }, true},
	} {
		p := newFake("p", says(answer(200, "value", test.named...)))
		pipes := newPipes(p)
		o, _ := quiet(Options{Upstream: test.upstream})
		c := newClient(o, pipes.dial)
		q := query(p)
		q.Content = []byte(test.asked)
		got, err := fetch(c, q)
		if test.taken != (err == nil && got.body == "value") {
			t.Errorf("asked for %q, named %q: %+v, %v", test.asked, test.named, got, err)
		}
		c.Close()
		pipes.stop()
	}
}
