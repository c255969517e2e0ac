//go:build integration

package kubernetes

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A client sends requests over one connection at a time, and none twice, as the client of net/http would.
type client struct {
	address string
	tls     *tls.Config // nil for http
	token   string

	conn net.Conn
	r    *bufio.Reader
}

// answer is a complete answer.
type answer struct {
	code          int
	body, version string
}

// requestTimeout is when a request that has no answer has failed.
const requestTimeout = 10 * time.Second

func (c *client) get(target string) (answer, error) {
	if c.conn == nil {
		if err := c.dial(); err != nil {
			return answer{}, err
		}
	}
	a, last, err := c.exchange(target)
	if err != nil || last {
		c.close()
	}
	return a, err
}

func (c *client) dial() (err error) {
	d := &net.Dialer{Timeout: requestTimeout}
	if c.tls != nil {
		c.conn, err = tls.DialWithDialer(d, "tcp", c.address, c.tls)
	} else {
		c.conn, err = d.Dial("tcp", c.address)
	}
	if err != nil {
		c.conn = nil
		return err
	}
	c.r = bufio.NewReader(c.conn)
	return nil
}

func (c *client) exchange(target string) (a answer, last bool, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return a, true, err
	}
	header := ""
	if c.token != "" {
		header = "Authorization: Bearer " + c.token + "\r\n"
	}
	if _, err := fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: sequins\r\n%s\r\n", target, header); err != nil {
		return a, true, err
	}
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return a, true, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(body), resp.Header.Get("X-Sequins-Version")}, resp.Close, err
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close() // nothing is lost with it
		c.conn = nil
	}
}

// load are clients that read random keys through a service, until stop.
type load struct {
	end  chan struct{}
	work sync.WaitGroup

	mu       sync.Mutex
	requests int
	oldest   string   // version that answers may be of
	failures []string // the first ones
	failed   int
}

// startLoad starts a number of clients, each of which sends a request every few milliseconds.
func startLoad(clients int, newClient func() *client) *load {
	l := &load{end: make(chan struct{})}
	for range clients {
		l.work.Go(func() { l.read(newClient()) })
	}
	return l
}

func (l *load) read(c *client) {
	defer c.close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-l.end:
			return
		case <-tick.C:
		}
		i := rand.N(keys)
		began := time.Now()
		a, err := c.get("/" + db + "/" + key(i))
		l.note(i, a, err, began)
	}
}

func (l *load) note(i int, a answer, err error, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	if err == nil && a.code == http.StatusOK && a.body == value(i, a.version) && a.version >= l.oldest {
		return
	}
	if l.failed++; l.failed <= 10 {
		l.failures = append(l.failures, fmt.Sprintf("%s %s after %s: %d %.100q of %q, %v", began.Format("15:04:05.000"), key(i), time.Since(began), a.code, a.body, a.version, err))
	}
}

// check fails the test if a request has failed up to now.
func (l *load) check(t testing.TB, when string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed > 0 {
		t.Errorf("%s: %d of %d requests have failed:\n%s", when, l.failed, l.requests, strings.Join(l.failures, "\n"))
	}
	t.Logf("%s: %d requests", when, l.requests)
	l.requests, l.failed, l.failures = 0, 0, nil
}

// since makes answers of older versions than this one failures.
func (l *load) since(version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.oldest = version
}

// stop ends the load.
func (l *load) stop() {
	close(l.end)
	l.work.Wait()
}
