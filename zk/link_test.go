//go:build integration

package zk

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
)

// handshakeReply returns the reply of a server that begins a session.
func handshakeReply(session int64, timeout int32) []byte {
	b := binary.BigEndian.AppendUint32(nil, 36)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(timeout))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = binary.BigEndian.AppendUint32(b, 16)
	return append(b, make([]byte, 16)...)
}

// A peer that is not a ZooKeeper server gives an error that says so, and the session keeps retrying.
func TestForeignServers(t *testing.T) {
	for name, test := range map[string]struct {
		reply []byte
		want  string
	}{
		"http":           {[]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nno"), "not a ZooKeeper server"},
		"nothing":        {nil, "EOF"},
		"half a length":  {[]byte{0, 0}, "unexpected EOF"},
		"half a reply":   {handshakeReply(1, 4000)[:20], "unexpected EOF"},
		"short reply":    {[]byte{0, 0, 0, 4, 1, 2, 3, 4}, "packet of 4 bytes"},
		"no timeout":     {handshakeReply(1, 0), "session timeout of 0 ms"},
		"minus timeout":  {handshakeReply(1, -5), "session timeout of -5 ms"},
		"short packet":   {append(handshakeReply(1, 4000), 0, 0, 0, 3, 1, 2, 3), "packet of 3 bytes"},
		"endless packet": {append(handshakeReply(1, 4000), 0xff, 0xff, 0xff, 0xff), "packet of 4294967295 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := serveReply(t, test.reply)
			var log journal
			s := session(t, Options{Servers: []string{addr}, ConnectTimeout: time.Second, SessionTimeout: long, Root: "/r", Logger: log.logger()})
			s.Publish("a", nil)
			s.Watch("a", true)
			expect.Eventually(t, test.want, func() bool {
				last := s.Status().LastError
				return strings.Contains(last, test.want) && (test.reply == nil || len(test.reply) == 2 || strings.Contains(last, addr))
			})
			if log.count("ERROR") != 0 {
				t.Errorf("log: %s", log.b.String())
			}
		})
	}
}

// serveReply answers every connection with the same bytes and then sends nothing.
func serveReply(t *testing.T, reply []byte) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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

// memory is a connection that delivers given bytes.
type memory struct {
	net.Conn
	r io.Reader
}

func (m memory) Read(p []byte) (int, error)      { return m.r.Read(p) }
func (m memory) SetReadDeadline(time.Time) error { return nil }
func (m memory) RemoteAddr() net.Addr            { return &net.TCPAddr{} }

// FuzzLink checks that what link passes on is a prefix of what arrived, and that every length in it is within bounds.
func FuzzLink(f *testing.F) {
	whole := append(handshakeReply(1, 4000), 0, 0, 0, 17)
	f.Add(append(whole, make([]byte, 17)...), 3)
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"), 100)
	f.Add(append(whole, 1, 2, 3), 1)
	f.Fuzz(func(t *testing.T, in []byte, chunk int) {
		l := &link{Conn: memory{r: bytes.NewReader(in)}, opened: true}
		var out []byte
		buf := make([]byte, max(1, min(chunk, 1000)))
		for {
			n, err := l.Read(buf)
			out = append(out, buf[:n]...)
			if err != nil {
				break
			}
			if n == 0 {
				t.Fatal("nothing was read, and there is no error")
			}
		}
		if !bytes.HasPrefix(in, out) {
			t.Fatalf("%x became %x", in, out)
		}
		for first := true; len(out) >= 4; first = false {
			n := binary.BigEndian.Uint32(out)
			if first && (n < minHandshake || n > maxHandshake) || !first && (n < minPacket || n > maxPacket) {
				t.Fatalf("a packet of %d bytes was passed on", n)
			}
			out = out[min(len(out), 4+int(n)):]
		}
	})
}

// A server that accepts a connection and sends nothing is abandoned after the timeout, or when the client is closed.
func TestSilentHandshake(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	l := newLink(t.Context(), client, 10*time.Millisecond)
	defer l.Close()
	if err := l.SetReadDeadline(time.Time{}); err != nil { // as the library does
		t.Fatal(err)
	}
	_, err := l.Read(make([]byte, 4))
	if e := net.Error(nil); !errors.As(err, &e) || !e.Timeout() {
		t.Errorf("read: %v", err)
	}
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
