package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
)

// slowBodies is a peer that begins to read long bodies late, over connections whose buffers are much smaller.
func slowBodies(t *testing.T, late time.Duration) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	serve := func(c net.Conn) {
		defer c.Close()
		for r := bufio.NewReader(c); ; {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if req.ContentLength > 1000 {
				time.Sleep(late)
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
			if _, err := io.WriteString(c, answer(200, "x")); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.(*net.TCPConn).SetReadBuffer(64 << 10) //nolint:errcheck // the test is only weaker without
			go serve(c)
		}
	}()
	return ln.Addr().String()
}

// A request whose long body is still being sent when the next peer's turn comes is sent to its end, also over a connection
// from an earlier request.
func TestLongBodyOverOldConnection(t *testing.T) {
	addr := slowBodies(t, 300*time.Millisecond)
	c := client(t, Options{Timeout: plenty, StageTimeout: 100 * time.Millisecond})
	for i, body := range [][]byte{[]byte("k"), bytes.Repeat([]byte("k"), 32<<20)} {
		if _, err := fetch(c, &Query{Peers: []string{addr}, Path: []byte("/db"), Version: "v1", Body: body}); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

const plenty = 10 * time.Second

// A peer that refuses a long request before it has read it has answered, and is not taken for dead.
func TestLongBodyRefused(t *testing.T) {
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	go s.Serve(ln) //nolint:errcheck // it ends with Close
	defer s.Close()
	c := client(t, Options{Timeout: plenty})
	for range 5 { // the answer can be lost with the connection, but not each time
		_, err = fetch(c, &Query{Peers: []string{ln.Addr().String()}, Path: []byte("/db"), Version: "v1", Body: bytes.Repeat([]byte("k"), 1<<20)})
		if errors.Is(err, ErrNoPeers) && strings.Contains(err.Error(), "status 503") {
			return
		}
	}
	t.Errorf("%v; want the status", err)
}

// A pause in an answer that is read at once ends it soon.
func TestPromptAnswer(t *testing.T) {
	p := listen(t, func(c net.Conn, _ *http.Request) bool {
		full := answer(200, strings.Repeat("x", 1<<20))
		io.WriteString(c, full[:200<<10]) //nolint:errcheck // the client reads it
		time.Sleep(3 * promptTime)
		return false
	})
	c := client(t, Options{Timeout: plenty})
	a, err := c.Fetch(context.Background(), &Query{Peers: []string{p.addr}, Path: []byte("/db"), Version: "v1", Prompt: true})
	expect.NoError(t, err)
	defer a.Body.Close()
	begun := time.Now()
	if _, err := io.Copy(io.Discard, a.Body); err == nil || time.Since(begun) > 2*promptTime {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}
