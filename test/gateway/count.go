package gateway

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Counter is a proxy in front of servers that counts the bytes they send.
type Counter struct {
	t     testing.TB
	bytes atomic.Int64

	mu      sync.Mutex
	doors   map[string]string // by the server's address: the address of the counter
	closers []io.Closer
	wg      sync.WaitGroup
}

// NewCounter returns a counter that is closed with the test.
func NewCounter(t testing.TB) *Counter {
	c := &Counter{t: t, doors: map[string]string{}}
	t.Cleanup(func() {
		c.mu.Lock()
		all := c.closers
		c.doors, c.closers = nil, nil
		c.mu.Unlock()
		for _, x := range all {
			x.Close()
		}
		c.wg.Wait()
	})
	return c
}

// Bytes returns how many bytes of servers were passed on.
func (c *Counter) Bytes() int64 { return c.bytes.Load() }

// Dial connects to an address through the counter.
func (c *Counter) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	door, err := c.Addr(address)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, network, door)
}

// Addr returns the counter's address for a server.
func (c *Counter) Addr(server string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doors == nil {
		return "", net.ErrClosed
	}
	if door, ok := c.doors[server]; ok {
		return door, nil
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	c.closers = append(c.closers, ln)
	c.doors[server] = ln.Addr().String()
	c.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() { c.pass(conn, server) })
		}
	})
	return c.doors[server], nil
}

// pass copies both directions of a connection.
func (c *Counter) pass(client net.Conn, server string) {
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		client.Close()
		return
	}
	c.mu.Lock()
	open := c.doors != nil
	c.closers = append(c.closers, client, upstream)
	c.mu.Unlock()
	if !open {
		client.Close()
		upstream.Close()
		return
	}
	// A small buffer: bytes in it count as sent although the client has not read them.
	_ = client.(*net.TCPConn).SetWriteBuffer(16 << 10)
	_ = upstream.(*net.TCPConn).SetReadBuffer(16 << 10)
	c.wg.Go(func() {
		_, _ = io.Copy(upstream, client)
		_ = upstream.(*net.TCPConn).CloseWrite()
	})
	b := make([]byte, 16<<10)
	for {
		n, err := upstream.Read(b)
		if n > 0 {
			if _, werr := client.Write(b[:n]); werr != nil {
				break
			}
			c.bytes.Add(int64(n))
		}
		if err != nil {
			break
		}
	}
	client.Close()
	upstream.Close()
}
