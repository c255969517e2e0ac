package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/test/expect"
	"sequins/test/zktest"
	"sequins/zk/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waiting for what must occur, on a busy machine.
const patience = time.Minute

// connect returns a connection whose server answers the handshake and then each request with what answer returns.
func connect(t testing.TB, answer func(op int32, body []byte) zktest.Answer, event func(string)) *wire.Conn {
	t.Helper()
	s := zktest.Serve(t, "127.0.0.1:0", answer)
	nc, err := net.Dial("tcp", s.Addr)
	expect.NoError(t, err)
	c, err := wire.Connect(nc, &wire.Session{Timeout: patience}, patience, event)
	expect.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// requests are all requests of the package.
var requests = map[string]func(*wire.Conn) error{
	"children":     func(c *wire.Conn) error { _, _, err := c.Children("/a", true); return err },
	"get":          func(c *wire.Conn) error { _, _, err := c.Get("/a"); return err },
	"exists":       func(c *wire.Conn) error { _, err := c.Exists("/a"); return err },
	"create":       func(c *wire.Conn) error { return c.Multi(wire.Create("/a", []byte("x"), wire.World, false)) },
	"delete":       func(c *wire.Conn) error { return c.Multi(wire.Delete("/a", 0)) },
	"authenticate": func(c *wire.Conn) error { return c.Authenticate("a:b") },
	"multi": func(c *wire.Conn) error {
		return c.Multi(wire.Create("/a", nil, wire.World, true), wire.Delete("/b", -1))
	},
}

func TestAgreeingServer(t *testing.T) {
	c := connect(t, zktest.Agree, nil)
	for name, request := range requests {
		if err := request(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	for code, lost := range map[int32]bool{-101: false, -110: false, -9999: false, -112: true, -118: true, -4: true} {
		c := connect(t, func(int32, []byte) zktest.Answer { return zktest.Answer{Code: code} }, nil)
		for name, request := range requests {
			err := request(c)
			switch {
			case lost && (!errors.Is(err, wire.ErrLost) || !errors.Is(c.Err(), wire.Error(code))):
				t.Errorf("code %d, %s: %v; %v", code, name, err, c.Err())
			case !lost && !errors.Is(err, wire.Error(code)) && (name != "exists" || code != -101):
				t.Errorf("code %d, %s: %v", code, name, err)
			}
		}
	}
}

// A failed transaction names the operation that failed, not those that were rolled back because of it.
func TestFailedTransaction(t *testing.T) {
	result := func(code int32) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(0xffffffff)) // the operation "error"
		b = binary.BigEndian.AppendUint32(append(b, 0), uint32(code))
		return binary.BigEndian.AppendUint32(b, uint32(code))
	}
	end := append(binary.BigEndian.AppendUint32(nil, uint32(0xffffffff)), 1, 0xff, 0xff, 0xff, 0xff)
	body := bytes.Join([][]byte{result(0), result(-110), result(-2), end}, nil)
	c := connect(t, func(int32, []byte) zktest.Answer { return zktest.Answer{Body: body} }, nil)
	if err := c.Multi(wire.Delete("", 0), wire.Delete("", 0), wire.Delete("", 0)); !errors.Is(err, wire.NodeExists) {
		t.Error(err)
	}
}

// A reply that does not fit its request fails the request, ends the connection, and costs no more memory than it has bytes.
func TestMalformedReplies(t *testing.T) {
	many := []byte{0x7f, 0xff, 0xff, 0xff}
	for name, body := range map[string][]byte{
		"nothing": nil, "a great count": many, "a great count and a stat": append(many, make([]byte, 68)...),
		"a negative length": append([]byte{0xff, 0xff, 0xff, 0xfe}, make([]byte, 68)...), "four zero bytes": make([]byte, 4), "too much": make([]byte, 300),
	} {
		for request, do := range requests {
			if len(body) == 0 && (request == "delete" || request == "authenticate") || name == "four zero bytes" && request == "create" {
				continue // that fits: nothing, and an empty path
			}
			c := connect(t, func(int32, []byte) zktest.Answer { return zktest.Answer{Body: body} }, nil)
			before := allocated()
			if err := do(c); !errors.Is(err, wire.ErrLost) || c.Err() == nil || !strings.Contains(c.Err().Error(), "malformed reply") {
				t.Errorf("%s to %s: %v; the connection: %v", name, request, err, c.Err())
			}
			if n := allocated() - before; n > 1<<20 {
				t.Errorf("%s to %s: %d bytes were allocated", name, request, n)
			}
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// What no server sends ends the connection, and says what it was.
func TestBrokenStreams(t *testing.T) {
	for want, raw := range map[string][]byte{
		"reply to request 9, expected the one to request 1": zktest.Reply(9, 1, 0, nil),
		"packet of 4294967295 bytes":                        {0xff, 0xff, 0xff, 0xff},
		"packet of 15 bytes":                                {0, 0, 0, 15},
		"event: malformed reply":                            zktest.Reply(-1, -1, 0, []byte{1, 2, 3}),
		"to no request":                                     append(zktest.Reply(1, 1, 0, make([]byte, 72)), zktest.Reply(2, 1, 0, nil)...),
	} {
		c := connect(t, func(int32, []byte) zktest.Answer { return zktest.Answer{Raw: raw} }, nil)
		_, _, _ = c.Get("/a") // in the last case it is answered
		select {
		case <-c.Ended():
		case <-time.After(patience):
			t.Fatalf("%s: the connection goes on", want)
		}
		if !strings.Contains(c.Err().Error(), want) {
			t.Errorf("%s: %v", want, c.Err())
		}
	}
}

// A packet that is announced and does not come costs no memory.
func TestAnnouncedPacket(t *testing.T) {
	c := connect(t, func(int32, []byte) zktest.Answer { return zktest.Answer{Raw: []byte{1, 0, 0, 0, 1, 2, 3}} }, nil)
	before := allocated()
	go func() { // the client waits for the rest
		time.AfterFunc(100*time.Millisecond, c.Close)
	}()
	if _, _, err := c.Get("/a"); !errors.Is(err, wire.ErrLost) {
		t.Error(err)
	}
	if n := allocated() - before; n > 1<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// A request without a reply ends the connection, although heartbeats are answered.
func TestLostReply(t *testing.T) {
	s := zktest.Serve(t, "127.0.0.1:0", func(int32, []byte) zktest.Answer { return zktest.Answer{None: true} })
	nc, err := net.Dial("tcp", s.Addr)
	expect.NoError(t, err)
	c, err := wire.Connect(nc, &wire.Session{Timeout: 300 * time.Millisecond}, patience, nil)
	expect.NoError(t, err)
	defer c.Close()
	if _, _, err := c.Get("/a"); !errors.Is(err, wire.ErrLost) || !strings.Contains(c.Err().Error(), "no reply to a request within 300ms") {
		t.Errorf("%v; %v", err, c.Err())
	}
}

// A request of which the reply is lost is not answered with the next one's.
func TestReplyToAnother(t *testing.T) {
	var asked atomic.Int64
	c := connect(t, func(op int32, body []byte) zktest.Answer {
		if asked.Add(1) == 1 {
			return zktest.Answer{None: true}
		}
		return zktest.Agree(op, body)
	}, nil)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, _, err := c.Get("/a"); !errors.Is(err, wire.ErrLost) {
				t.Errorf("%v; %v", err, c.Err())
			}
		})
	}
	both.Wait()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "reply to request 2, expected the one to request 1") {
		t.Error(err)
	}
}

// The numbers of a session's requests ascend over its connections, up to the greatest.
func TestXids(t *testing.T) {
	s := zktest.Serve(t, "127.0.0.1:0", zktest.Agree)
	session := &wire.Session{Timeout: patience, Xid: math.MaxInt32 - 3}
	for _, want := range [][]int32{{math.MaxInt32 - 2, math.MaxInt32 - 1}, {math.MaxInt32, 1, 2}, {3}} {
		nc, err := net.Dial("tcp", s.Addr)
		expect.NoError(t, err)
		c, err := wire.Connect(nc, session, patience, nil)
		expect.NoError(t, err)
		for _, xid := range want {
			if _, _, err := c.Get("/a"); err != nil || s.Xid.Load() != xid {
				t.Errorf("%v; request %d, want %d", err, s.Xid.Load(), xid)
			}
		}
		c.Close()
	}
}

// script is a server that sends given bytes and reads what it is sent.
func script(in []byte) net.Conn {
	client, server := net.Pipe()
	go io.Copy(io.Discard, server)
	go func() {
		server.Write(in)
		server.Close()
	}()
	return client
}

// FuzzStream has a server send anything instead of, or after, a handshake: nothing panics, and the connection ends.
func FuzzStream(f *testing.F) {
	hello := zktest.Handshake(1, 4000)
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"))
	f.Add(append(bytes.Clone(hello), zktest.Reply(1, 1, 0, make([]byte, 72))...))
	f.Add(append(bytes.Clone(hello), zktest.Reply(-1, -1, 0, append(make([]byte, 11), 2, '/', 'a'))...))
	f.Add(hello[:20])
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := wire.Connect(script(in), &wire.Session{Timeout: patience}, patience, func(string) {})
		if err != nil {
			return
		}
		defer c.Close()
		_, _, _ = c.Get("/a")
		<-c.Ended()
	})
}

// FuzzReply has a server answer each request with anything: it is refused, or what it says fits into its bytes.
func FuzzReply(f *testing.F) {
	names := []string{"children", "get", "exists", "create", "delete", "authenticate", "multi"}
	for i := range names {
		f.Add(i, make([]byte, 72))
		f.Add(i, []byte{0x7f, 0xff, 0xff, 0xff})
	}
	create, _ := requestOf(func(c *wire.Conn) error { return requests["multi"](c) })
	f.Add(6, zktest.Agree(zktest.Multi, create).Body)
	f.Fuzz(func(t *testing.T, i int, body []byte) {
		if i < 0 || i >= len(names) {
			return
		}
		in := append(zktest.Handshake(1, 4000), zktest.Reply(1, 1, 0, body)...)
		c, err := wire.Connect(script(in), &wire.Session{Timeout: patience}, patience, func(string) {})
		expect.NoError(t, err)
		defer c.Close()
		if names[i] == "children" {
			children, _, _ := c.Children("/a", true)
			if 4*len(children) > len(body) {
				t.Errorf("%d children in %d bytes", len(children), len(body))
			}
			return
		}
		_ = requests[names[i]](c)
	})
}

// requestOf returns the body of a request.
func requestOf(do func(*wire.Conn) error) ([]byte, error) {
	client, server := net.Pipe()
	defer server.Close()
	got := make(chan []byte, 1)
	go func() {
		packet(server)
		server.Write(zktest.Handshake(1, 4000))
		got <- packet(server)[8:]
		server.Close()
	}()
	c, err := wire.Connect(client, &wire.Session{Timeout: patience}, patience, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = do(c)
	return <-got, nil
}

func packet(r io.Reader) []byte {
	header := make([]byte, 4)
	io.ReadFull(r, header)
	b := make([]byte, binary.BigEndian.Uint32(header))
	io.ReadFull(r, b)
	return b
}
