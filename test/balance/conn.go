package balance

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// conn is a connection to a node. net/http's client is not used, since it sends a request again whose connection
// breaks.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, requestTimeout)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReader(c)}, nil
}

// get sends a request and reads the answer. last: the connection takes no other.
func (c *conn) get(target string) (a Answer, last bool, err error) {
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return a, true, err
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: balance\r\n\r\n", target); err != nil {
		return a, true, err
	}
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return a, true, err
	}
	defer resp.Body.Close()
	a.Code, a.Header = resp.StatusCode, resp.Header
	a.Body, err = io.ReadAll(resp.Body)
	return a, resp.Close, err
}

// open reports whether the node has neither closed the connection nor sent unsolicited data.
func (c *conn) open() bool {
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	waits := false
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		waits = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && waits
}
