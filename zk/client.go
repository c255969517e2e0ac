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

// A client is one client of the library. It reconnects by itself, and begins new sessions.
type client struct {
	conn     *zk.Conn
	hosts    hosts
	events   chan struct{}   // capacity 1: look at the state of conn
	over     <-chan zk.Event // closed at the end of conn
	cancel   context.CancelFunc
	authed   bool         // what we are known by was told to a server; from then on the library does so
	accepted atomic.Int64 // connections since the last one on which there was a session
}

// dial makes a client. Whether there is a server is found out later.
func (s *Session) dial() *client {
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{events: make(chan struct{}, 1), cancel: cancel}
	var err error
	c.conn, c.over, err = zk.Connect(s.o.Servers, s.o.SessionTimeout,
		zk.WithHostProvider(&c.hosts), zk.WithDialer(s.dialer(ctx, c)),
		zk.WithLogInfo(false), zk.WithLogger(logger{s}),
		zk.WithEventCallback(func(e zk.Event) { s.event(c, e) }))
	if err != nil {
		panic("zk: " + err.Error()) // it knows no error but that there are no servers
	}
	return c
}

// event is called by the library for every event, and must not wait.
func (s *Session) event(c *client, e zk.Event) {
	if e.Type != zk.EventSession {
		s.notify(e.Path)
		return
	}
	switch e.State {
	case zk.StateHasSession:
		c.accepted.Store(0)
	case zk.StateExpired:
		c.hosts.answered()
	}
	select {
	case c.events <- struct{}{}:
	default:
	}
}

// authenticate tells the server who we are, which has to be done once.
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

// hangUp ends the session, if a server can be reached, and returns when nothing of the client is left.
func (c *client) hangUp() {
	if c.conn.State() != zk.StateHasSession {
		c.cancel()
	}
	c.conn.Close() // waits for at most a second, or three if much is to be sent before
	c.cancel()
	for range c.over {
	}
}

// dialer connects to servers by name. The library would look their names up once, and never again.
func (s *Session) dialer(ctx context.Context, c *client) zk.Dialer {
	dial := (&net.Dialer{}).DialContext
	if s.o.TLS != nil {
		dial = (&tls.Dialer{Config: s.o.TLS}).DialContext
	}
	return func(network, address string, _ time.Duration) (net.Conn, error) {
		timeout, cancel := context.WithTimeout(ctx, s.o.ConnectTimeout)
		defer cancel()
		conn, err := dial(timeout, network, address)
		if err != nil {
			return nil, err
		}
		c.accepted.Add(1)
		return newLink(ctx, conn, max(s.o.ConnectTimeout, s.o.SessionTimeout/3)), nil
	}
}

// logger takes what the library logs for the status.
type logger struct{ s *Session }

func (l logger) Printf(format string, args ...any) {
	l.s.failed("connection", fmt.Errorf("%s", fmt.Sprintf(format, args...)))
}

// retryPause is how soon after it was last connected a client may be in trouble again without being held back.
const retryPause = time.Second

// hosts deals out the servers in turn, as names. It implements zk.HostProvider.
type hosts struct {
	mu      sync.Mutex
	servers []string
	next    int       // of servers
	tried   int       // servers since the last connection
	last    time.Time // when that was
}

func (h *hosts) Init(servers []string) error {
	h.servers = servers // the library has shuffled them
	return nil
}

func (h *hosts) Len() int { return len(h.servers) }

// Next returns a server, and whether to wait a second before it is tried: when all have been, and when connections are
// made and lost in quick succession.
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

// answered notes that a server has said that the session has expired: there is no need to wait before the next one.
func (h *hosts) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried, h.last = 0, time.Time{}
}
