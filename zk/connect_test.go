//go:build integration

package zk

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/zktest"
)

// A peer that is not a ZooKeeper server gives an error that says so, and the session keeps retrying.
func TestForeignServers(t *testing.T) {
	for name, test := range map[string]struct {
		reply []byte
		want  string
	}{
		"http":           {[]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nno"), "not a ZooKeeper server"},
		"nothing":        {nil, "EOF"},
		"half a length":  {[]byte{0, 0}, "unexpected EOF"},
		"half a reply":   {zktest.Handshake(1, 4000)[:20], "unexpected EOF"},
		"short reply":    {[]byte{0, 0, 0, 4, 1, 2, 3, 4}, "packet of 4 bytes"},
		"no timeout":     {zktest.Handshake(1, 0), "session timeout of 0 ms"},
		"minus timeout":  {zktest.Handshake(1, -5), "session timeout of -5 ms"},
		"short packet":   {append(zktest.Handshake(1, 4000), 0, 0, 0, 3, 1, 2, 3), "packet of 3 bytes"},
		"endless packet": {append(zktest.Handshake(1, 4000), 0xff, 0xff, 0xff, 0xff), "packet of 4294967295 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := serveReply(t, test.reply)
			var log expect.Output
			s := session(t, Options{Servers: []string{addr}, ConnectTimeout: time.Second, SessionTimeout: long, Root: "/r", Logger: log.Logger()})
			s.Publish("a", nil)
			s.Watch("a", func([]Entry) {})
			expect.Eventually(t, test.want, func() bool {
				last := s.Status().LastError
				return strings.Contains(last, test.want) && (test.reply == nil || len(test.reply) == 2 || strings.Contains(last, addr))
			})
			if count(&log, "ERROR") != 0 {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// serveReply answers every connection with the same bytes and then sends nothing.
func serveReply(t *testing.T, reply []byte) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Write(reply)
			c.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, c) // until the client closes the connection: a reset would discard what was sent
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

// serveThenSilence answers the first packet of one connection. asked is closed when another packet arrives.
func serveThenSilence(t *testing.T, reply []byte) (addr string, asked <-chan struct{}) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	came, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Read(make([]byte, 100))
		c.Write(reply)
		if n, _ := c.Read(make([]byte, 1)); n > 0 {
			close(came)
		}
		io.Copy(io.Discard, c)
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String(), came
}

// The status says of a server that accepts connections and sends nothing that it does not answer, with TLS or without.
func TestSilentServer(t *testing.T) {
	for _, secure := range []*tls.Config{nil, {}} {
		addr, _ := serveThenSilence(t, nil)
		s := session(t, Options{Servers: []string{addr}, ConnectTimeout: 100 * time.Millisecond, SessionTimeout: time.Second, Root: "/r", TLS: secure})
		expect.Eventually(t, "the reason", func() bool { return s.Status().LastError != "" })
		if got := s.Status().LastError; !strings.Contains(got, addr) || !strings.Contains(got, "no answer within ") || strings.Contains(got, "authentication") {
			t.Errorf("TLS %v: %s", secure != nil, got)
		}
		closeInTime(t, s)
	}
}

// The connection is made again to end the session: otherwise the others go on asking this node until the session expires.
func TestCloseWithoutConnection(t *testing.T) {
	var ended atomic.Int64
	server := zktest.Serve(t, "127.0.0.1:0", func(op int32, body []byte) zktest.Answer {
		if op == zktest.End {
			ended.Add(1)
		}
		return zktest.Agree(op, body)
	})
	p := gateway.NewProxy(t, server.Addr)
	s := session(t, Options{Servers: []string{p.Addr}, ConnectTimeout: time.Second, SessionTimeout: long, Root: "/r"})
	expect.Eventually(t, "there is a session", func() bool { return s.Status().State == Connected })
	p.Cut()
	expect.Eventually(t, "the connection is lost", func() bool { return s.Status().State == Suspended })
	p.Mend(t)
	s.Close()
	if ended.Load() != 1 {
		t.Errorf("the session was ended %d times", ended.Load())
	}
}

// A connection that is lost while the data of a large directory is read leaves the budget of what was not asked for to the next one.
func TestLossWhileReading(t *testing.T) {
	const names, burst = 600, 800
	children := binary.BigEndian.AppendUint32(nil, names)
	for i := range names {
		children = append(binary.BigEndian.AppendUint32(children, 3), fmt.Sprintf("%03d", i)...)
	}
	children = append(children, make([]byte, 68)...)
	var lost atomic.Bool
	server := zktest.Serve(t, "127.0.0.1:0", func(op int32, body []byte) zktest.Answer {
		switch {
		case op == zktest.Children:
			return zktest.Answer{Body: children}
		case op == zktest.GetData && !lost.Swap(true):
			return zktest.Answer{Raw: zktest.Reply(-7, 1, 0, nil)}
		}
		return zktest.Agree(op, body)
	})
	s := session(t, Options{Servers: []string{server.Addr}, ConnectTimeout: time.Second, SessionTimeout: 4 * time.Second, Root: "/r"}, func(s *Session) {
		s.reads = rate.NewLimiter(1, burst)
	})
	listed := make(chan int, 10)
	s.Watch(NodesDir, func(all []Entry) { listed <- len(all) })
	select {
	case n := <-listed:
		if n != names || !lost.Load() {
			t.Errorf("%d znodes, lost %t", n, lost.Load())
		}
	case <-time.After(20 * time.Second):
		t.Error("the directory is not listed again soon after the connection was lost")
	}
}
