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

// get sends a request and reads the answer.
func (c *conn) get(target string) (*http.Response, []byte, error) {
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, nil, err
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: balance\r\n\r\n", target); err != nil {
		return nil, nil, err
	}
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// open reports whether the node has neither closed the connection nor sent anything that was not asked for.
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
