package zk

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// client is one client of the ZooKeeper library. The library reconnects by itself and begins new sessions.
type client struct {
	conn     *zk.Conn
	hosts    hosts
	events   chan struct{}   // capacity 1: the state of conn has changed
	over     <-chan zk.Event // closed when conn has ended
	cancel   context.CancelFunc
	authed   bool         // the credentials were sent once; from then on the library sends them
	accepted atomic.Int64 // connections since the last one that had a session
}

// dial returns a client. It does not wait for a connection.
func (s *Session) dial() *client {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{events: make(chan struct{}, 1), cancel: cancel}
	var err error
	c.conn, c.over, err = zk.Connect(s.o.Servers, s.o.SessionTimeout,
		zk.WithHostProvider(&c.hosts), zk.WithDialer(s.dialer(ctx, c)),
		zk.WithLogInfo(false), zk.WithLogger(logger{s}),
		zk.WithEventCallback(func(e zk.Event) { s.event(c, e) }))
	if err != nil {
		panic("zk: " + err.Error()) // the only error is an empty list of servers
	}
	return c
}

// event is the library's callback for every event. It must not block.
func (s *Session) event(c *client, e zk.Event) {
	if e.Type != zk.EventSession {
		s.notify(e.Path)
		return
	}
	switch e.State {
	case zk.StateHasSession:
		c.accepted.Store(0)
	case zk.StateExpired:
		c.hosts.skipWait()
	}
	select {
	case c.events <- struct{}{}:
	default:
	}
}

// authenticate sends the credentials to the server. The library repeats them on later connections.
func (c *client) authenticate(auth string) error {
	if auth == "" || c.authed {
		return nil
	}
	if err := c.conn.AddAuth("digest", []byte(auth)); err != nil {
		return err
	}
	c.authed = true
	return nil
}

// close ends the session if a server can be reached, and returns when the client's goroutines have ended.
func (c *client) close() {
	if c.conn.State() != zk.StateHasSession {
		c.cancel()
	}
	c.conn.Close() // waits for at most 1 s, or 3 s if there is much to send first
	c.cancel()
	for range c.over {
	}
}

// dialer connects to servers by name. The library itself would resolve their names only once.
func (s *Session) dialer(ctx context.Context, c *client) zk.Dialer {
	dial := (&net.Dialer{}).DialContext
	if s.o.TLS != nil {
		dial = (&tls.Dialer{Config: s.o.TLS}).DialContext
	}
	return func(network, address string, _ time.Duration) (net.Conn, error) {
		timeout, cancel := context.WithTimeout(ctx, s.o.ConnectTimeout)
		defer cancel()
		conn, err := dial(timeout, network, address)
		if timeout.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("no answer within %s: %w", s.o.ConnectTimeout, err)
		}
		if err != nil {
			return nil, err
		}
		c.accepted.Add(1)
		return newLink(ctx, conn, max(s.o.ConnectTimeout, s.o.SessionTimeout/3)), nil
	}
}

// logger records what the library logs as the last error of the status.
type logger struct{ s *Session }

func (l logger) Printf(format string, args ...any) {
	if format == "authentication failed: %s" { // whatever keeps a session from beginning
		format = "no session: %s"
	}
	l.s.recordError("connection", fmt.Errorf("%s", fmt.Sprintf(format, args...)))
}

// retryPause is the time after a connection within which another failure makes the client wait before it retries.
const retryPause = time.Second

// hosts returns the servers in turn, by name. It implements zk.HostProvider.
type hosts struct {
	mu      sync.Mutex
	servers []string
	next    int       // index into servers
	tried   int       // servers tried since the last connection
	last    time.Time // time of the last connection
}

func (h *hosts) Init(servers []string) error {
	h.servers = servers // the library has shuffled them
	return nil
}

func (h *hosts) Len() int { return len(h.servers) }

// Next returns a server and reports whether to wait one second before dialing it: when all servers have been tried, or
// when connections are made and lost in quick succession.
func (h *hosts) Next() (server string, wait bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	wait = h.tried == len(h.servers) || h.tried == 0 && time.Since(h.last) < retryPause
	if wait {
		h.tried = 0
	}
	h.tried++
	return server, wait
}

func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried, h.last = 0, time.Now()
}

// skipWait notes that a server has reported the session as expired: the next server is dialed without waiting.
func (h *hosts) skipWait() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried, h.last = 0, time.Time{}
}
