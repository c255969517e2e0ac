package process

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
)

// Response is a complete response.
type Response struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Version returns the version that the value was read from.
func (r *Response) Version() string { return r.Header.Get("X-Sequins-Version") }

// Client sends requests over one connection with unmodified targets: no cleaning, no escaping, no redirects. It is not
// safe for concurrent use.
type Client struct {
	addr string
	conn net.Conn
	r    *bufio.Reader
}

// Client returns a client of the node.
func (n *Node) Client() *Client { return NewClient(n.Addr) }

// NewClient returns a client of the node at an address.
func NewClient(addr string) *Client { return &Client{addr: addr} }

// Get requests a target such as /db/key, and dials again if the connection is closed.
func (c *Client) Get(target string) (*Response, error) { return c.Do("GET", target, "") }

// Do sends a request without a body. header consists of lines that end in \r\n.
func (c *Client) Do(method, target, header string) (*Response, error) {
	return c.Send(method, target, header, nil)
}

// Send is Do with a body, unless that is nil.
func (c *Client) Send(method, target, header string, body []byte) (*Response, error) {
	if body != nil {
		header += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	r, err := c.exchange(method, target, header, body)
	if err != nil || r.Header.Get("Connection") == "close" {
		c.Close()
	}
	return r, err
}

// connect dials if there is no connection.
func (c *Client) connect() error {
	if c.conn != nil {
		return nil
	}
	conn, err := net.DialTimeout("tcp", c.addr, Deadline)
	if err != nil {
		return err
	}
	c.conn, c.r = conn, bufio.NewReader(conn)
	return nil
}

func (c *Client) exchange(method, target, header string, body []byte) (*Response, error) {
	if err := c.conn.SetDeadline(time.Now().Add(Deadline)); err != nil {
		return nil, err
	}
	var request bytes.Buffer
	c.format(&request, method, target, header)
	request.Write(body)
	if _, err := c.conn.Write(request.Bytes()); err != nil {
		return nil, err
	}
	return c.read(method)
}

func (c *Client) format(b *bytes.Buffer, method, target, header string) {
	fmt.Fprintf(b, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, target, c.addr, header)
}

// read reads the answer to a request with a method.
func (c *Client) read(method string) (*Response, error) {
	if _, err := c.r.Peek(1); err != nil {
		return nil, err // io.EOF if the connection was closed before, which ReadResponse does not tell
	}
	resp, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.Close {
		resp.Header.Set("Connection", "close")
	}
	return &Response{resp.StatusCode, resp.Header, body}, nil
}

// GetAll requests several targets without waiting for an answer before the next request is sent, and returns the
// answers in order.
func (c *Client) GetAll(targets []string) ([]*Response, error) {
	all, err := c.getAll(targets)
	if err != nil {
		c.Close()
	}
	return all, err
}

func (c *Client) getAll(targets []string) ([]*Response, error) {
	if err := c.connect(); err != nil {
		return nil, err
	}
	if err := c.conn.SetDeadline(time.Now().Add(Deadline)); err != nil {
		return nil, err
	}
	var requests bytes.Buffer
	for _, target := range targets {
		c.format(&requests, "GET", target, "")
	}
	sent := make(chan error, 1)
	go func(conn net.Conn) { // answers are read meanwhile, as the node waits until they are
		_, err := conn.Write(requests.Bytes())
		sent <- err
	}(c.conn)
	var all []*Response
	for range targets {
		r, err := c.read("GET")
		if err != nil {
			c.conn.Close()
			return nil, errors.Join(err, <-sent)
		}
		all = append(all, r)
	}
	return all, <-sent
}

// Connected reports whether there is a connection from an earlier request. The node may have closed it.
func (c *Client) Connected() bool { return c.conn != nil }

// Close closes the connection.
func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// TryGet sends one request over a new connection.
func (n *Node) TryGet(target string) (*Response, error) {
	c := n.Client()
	defer c.Close()
	return c.Do("GET", target, n.header)
}

// Get is TryGet that fails the test on an error.
func (n *Node) Get(t testing.TB, target string) *Response {
	t.Helper()
	r, err := n.TryGet(target)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	return r
}

// Expect asks for a key and ends the test unless the answer has a code, a version and a body; any body if that is empty.
func (n *Node) Expect(t testing.TB, target string, code int, version, body string) {
	t.Helper()
	r := n.Get(t, target)
	if r.Code != code || r.Version() != version || body != "" && string(r.Body) != body {
		t.Fatalf("GET %s: %d of version %q: %.100q; want %d of %q: %.100q", target, r.Code, r.Version(), r.Body, code, version, body)
	}
}

// ExpectKeys asks a version of key-000000, key-000001, …, as many as records, for every seventh, or for some 300. The value of
// the third is values/2.
func (n *Node) ExpectKeys(t testing.TB, db, version, values string, records int) {
	t.Helper()
	for i := 0; i < records; i += max(7, records/300) {
		n.Expect(t, fmt.Sprintf("/%s/key-%06d", db, i), 200, version, fmt.Sprintf("%s/%d", values, i))
	}
}

// Metrics returns the metrics of the debug listener.
func (n *Node) Metrics(t testing.TB) string {
	t.Helper()
	c := &Client{addr: n.Debug}
	defer c.Close()
	r, err := c.Get("/metrics")
	expect.NoError(t, err)
	return string(r.Body)
}

// VersionState is the state of one version in /healthz.
type VersionState struct {
	State      string `json:"state"`
	Current    bool   `json:"current"`
	Error      string `json:"error"`
	Partitions []int  `json:"partitions"`
}

// Health returns /healthz, by db and version.
func (n *Node) Health(t testing.TB) map[string]map[string]VersionState {
	t.Helper()
	r, err := n.TryGet("/healthz")
	if err != nil {
		return nil // not started or already stopped: the caller polls
	}
	var h map[string]map[string]VersionState
	if err := json.Unmarshal(r.Body, &h); err != nil {
		t.Fatalf("/healthz: %v: %s", err, r.Body)
	}
	return h
}

// WaitCurrent waits until a version of a db is current.
func (n *Node) WaitCurrent(t testing.TB, db, version string) {
	t.Helper()
	n.WaitFor(t, db+" serves "+version, func() bool { return n.Health(t)[db][version].Current })
}

// Serve starts a node and waits until a version of a db is current.
func Serve(t testing.TB, c Config, db, version string) *Node {
	t.Helper()
	n := Start(t, c)
	n.WaitCurrent(t, db, version)
	return n
}

// Target returns the request target of a key, with every escapable byte escaped.
func Target(db string, key []byte) string {
	var b strings.Builder
	b.WriteString("/" + db + "/")
	for _, c := range key {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// PlainTarget returns the request target of a key with as few bytes escaped as HTTP allows: the percent sign, the
// question mark, and bytes that a request line cannot contain.
func PlainTarget(db string, key []byte) string {
	var b strings.Builder
	b.WriteString("/" + db + "/")
	for _, c := range key {
		if c <= ' ' || c == '%' || c == '?' || c == 0x7f {
			fmt.Fprintf(&b, "%%%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
