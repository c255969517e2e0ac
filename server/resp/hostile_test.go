package resp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"sequins/internal/conns"
	"sequins/internal/limitlog"
	"sequins/reads"
	"sequins/server/resp"
	"sequins/test/expect"
)

// Bytes that are no commands have an error as their answer, and end the connection.
func TestHostile(t *testing.T) {
	s := startNames(t, resp.Options{})
	for in, want := range map[string]string{
		"*1\r\n$9223372036854775808\r\n":       "-ERR Protocol error: invalid bulk length\r\n",
		"*1\r\n$9223372036854775807\r\nGET":    "-ERR Protocol error: invalid bulk length\r\n",
		"*1\r\n$-5\r\n":                        "-ERR Protocol error: invalid bulk length\r\n",
		"*2147483647\r\n":                      "-ERR Protocol error: invalid multibulk length\r\n",
		"*1\r\n*1\r\n*1\r\n":                   "-ERR Protocol error: expected '$', got '*'\r\n",
		"PING\r\n*1\r\n:1\r\n":                 "+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n",
		command("PING") + "*a\r\n":             "+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n",
		command("GET", "names/key-1") + "*a":   "$7\r\nvalue-1\r\n-ERR Protocol error: invalid multibulk length\r\n",
		"GET \"a\r\n":                          "-ERR Protocol error: quotes in an inline request\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\n\r\n":   "",
		"PING\r\nHost: a\r\nPING\r\n":          "+PONG\r\n",
		strings.Repeat("x", 100_000):           "-ERR Protocol error: too big inline request\r\n",
		command("SET", "a", "b") + "QUIT\r\nX": "-ERR unknown command 'SET', with args beginning with: 'a' 'b' \r\n+OK\r\n",
	} {
		c := s.dial(t)
		c.send(in)
		got, err := io.ReadAll(c)
		if string(got) != want || err != nil {
			t.Errorf("%.60q: %q, %v; want %q", in, got, err, want)
		}
	}
}

// A client that has sent a part of a command and then nothing is cut off, and so is one that does not authenticate.
func TestHalfCommands(t *testing.T) {
	s := startNames(t, resp.Options{Read: 50 * time.Millisecond})
	for _, in := range []string{"*", "*2\r\n$3\r\nGET\r\n$5\r\nab", "PIN", command("PING") + "*1\r\n$4\r\nP"} {
		c := s.dial(t)
		c.send(in)
		got, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(got, []byte("+PONG\r\n")) && len(got) > 0 {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	s = startNames(t, resp.Options{Read: 50 * time.Millisecond, Tokens: tokens(t, "one abcdefghijklmnopqrstuvwx *\n")})
	s.dial(t).closed()
	s = startNames(t, resp.Options{Idle: 50 * time.Millisecond})
	c := s.dial(t)
	if got := c.do("PING"); got != "PONG" {
		t.Error(got)
	}
	c.closed()
}

// A client that does not read its answers is cut off, and holds no version.
func TestSlowClient(t *testing.T) {
	s := startNames(t, resp.Options{Write: 50 * time.Millisecond})
	for _, args := range [][]string{{"GET", "names/large"}, {"MGET", "names/large", "names/large"}} {
		c := s.dial(t)
		c.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		go func() { io.WriteString(c, strings.Repeat(command(args...), 1000)) }()
		expect.Eventually(t, "the connection is closed", func() bool { return s.Connections() == 0 })
		c.Close()
	}
}

// Connections beyond the limit are refused as in Redis.
func TestMaxConns(t *testing.T) {
	s := startNames(t, resp.Options{Conns: &conns.Set{Max: 2, Log: limitlog.New(quiet)}})
	a, b := s.dial(t), s.dial(t)
	if a.do("PING") != "PONG" || b.do("PING") != "PONG" {
		t.Error("no answer")
	}
	c := s.dial(t)
	if got, _ := io.ReadAll(c); string(got) != "-ERR max number of clients reached\r\n" {
		t.Errorf("%q", got)
	}
	a.Close()
	expect.Eventually(t, "a connection is free", func() bool { return s.Connections() == 1 })
	if got := s.dial(t).do("PING"); got != "PONG" {
		t.Error(got)
	}
	if n, _ := s.conns.Refused(); n != 1 {
		t.Errorf("%d refused", n)
	}
}

// A command that is too large ends the connection after the answers to those before it, and the client receives the reason, also while it
// is still sending.
func TestLargeCommands(t *testing.T) {
	s := start(t, catalog{"names": setOf(t, "names", "v2", records())}, resp.Options{}, reads.Options{MaxBatchBytes: 200 << 10, MaxBatchKeys: 100})
	key := "names/" + strings.Repeat("k", 60_000)
	if got := s.dial(t).do("MGET", key, key, key); got != "[nil nil nil]" {
		t.Errorf("%.100s", got)
	}
	for in, want := range map[string]string{
		command("MGET", key, key, key, key):               "-ERR the arguments are too large: the limit is batch.max_bytes, and 8 KiB before AUTH\r\n",
		command("SET", "a", strings.Repeat("v", 900<<10)): "-ERR an argument is too long: the limit is that of a key, and 8 KiB before AUTH\r\n",
		command(make([]string, 1000)...):                  "-ERR too many arguments in one command: the limit is that of keys, and 10 before AUTH\r\n",
	} {
		c := s.dial(t)
		c.send(command("GET", "names/key-1") + in)
		if got, err := io.ReadAll(c); string(got) != "$7\r\nvalue-1\r\n"+want || err != nil {
			t.Errorf("%.100s, %v; want %s", got, err, want)
		}
	}
}

// Shutdown answers what was received, closes idle connections, and takes no new ones.
func TestShutdown(t *testing.T) {
	s := startNames(t, resp.Options{})
	idle, busy, half := s.dial(t), s.dial(t), s.dial(t)
	if idle.do("PING") != "PONG" {
		t.Error("no answer")
	}
	half.send("*2\r\n$3\r\nGET\r\n$11\r\nnames/k")
	busy.send(strings.Repeat(command("GET", "names/key-1"), 5000))
	answers := make(chan string, 1)
	go func() {
		got, _ := io.ReadAll(busy)
		answers <- string(got)
	}()
	expect.Eventually(t, "there are three connections", func() bool { return s.Connections() == 3 })
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		done <- s.Shutdown(ctx)
	}()
	idle.closed()
	half.send("ey-2\r\n")
	if got := half.reply(); got != "value-2" {
		t.Error(got)
	}
	half.closed()
	if got := <-answers; got != strings.Repeat("$7\r\nvalue-1\r\n", 5000) {
		t.Errorf("%d bytes of answers", len(got))
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", s.addr); err == nil {
		c.Close()
		t.Error("the listener is open")
	}
}

// Drain ends connections that are in use, and takes new ones.
func TestDrain(t *testing.T) {
	s := startNames(t, resp.Options{})
	used := s.dial(t)
	if used.do("GET", "names/key-1") != "value-1" {
		t.Error("no answer")
	}
	s.conns.Drain()
	if used.do("PING") != "PONG" {
		t.Error("no answer")
	}
	io.WriteString(used, command("PING")) //nolint:errcheck // the connection may have ended
	if rest, _ := io.ReadAll(used.r); len(rest) > len("+PONG\r\n") {
		t.Errorf("%q after the end", rest)
	}
	c := s.dial(t)
	for _, name := range []string{"LIB-NAME", "LIB-VER"} { // each waits for its answer, as in redis-py
		if c.do("CLIENT", "SETINFO", name, "x") != "OK" {
			t.Error("no handshake on a new connection")
		}
	}
	if c.do("GET", "names/key-1") != "value-1" {
		t.Error("no answer on a new connection")
	}
	if rest, _ := io.ReadAll(c.r); len(rest) > 0 {
		t.Errorf("%q after the end", rest)
	}
}

// Shutdown cuts off clients that do not end, when its time is over.
func TestShutdownInTime(t *testing.T) {
	s := startNames(t, resp.Options{})
	c := s.dial(t)
	c.send("*1\r\n$4\r\nPI")
	expect.Eventually(t, "there is a connection", func() bool { return s.Connections() == 1 })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	expect.Error(t, "Shutdown", s.Shutdown(ctx), context.Canceled)
}

// FuzzServer sends any bytes to a server, in segments, and expects that it lives, answers with valid replies, and closes the
// connection.
func FuzzServer(f *testing.F) {
	s := startNames(f, resp.Options{Read: time.Second})
	for _, in := range []string{command("GET", "names/key-1") + command("MGET", "names/a", "other/x"), "GET names/key-1\r\nHGET names key-2\r\n", "*1\r\n$-1\r\n",
		command("HELLO", "3") + command("CLIENT", "SETINFO", "LIB-NAME", "x") + command("MGET", "names/key-1", "other/x"), command("TYPE", "names/large"),
		command("COMMAND") + command("INFO") + command("SELECT", "names") + command("GET", "key-1")} {
		f.Add([]byte(in), uint64(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		c := s.dial(t)
		go func() {
			rnd := rand.New(rand.NewPCG(seed, 0))
			for rest := in; len(rest) > 0; {
				n := min(1+rnd.IntN(200), len(rest))
				if _, err := c.Write(rest[:n]); err != nil {
					break
				}
				rest = rest[n:]
			}
			c.Conn.(*net.TCPConn).CloseWrite()
		}()
		for {
			_, err := parseReply(c.r)
			if err == io.EOF {
				break
			}
			if err != nil && !strings.Contains(err.Error(), "connection reset") {
				t.Fatal(fmt.Errorf("%.200q: %w", in, err))
			}
			if err != nil {
				break
			}
		}
		if got := s.dial(t).do("GET", "names/key-1"); got != "value-1" {
			t.Fatalf("afterwards: %q", got)
		}
	})
}

// Connections that always have a part of a command in their buffer do not keep the memory of a large one.
func TestBuffersAreFreed(t *testing.T) {
	s := start(t, catalog{"names": setOf(t, "names", "v2", records())}, resp.Options{}, reads.Options{MaxBatchBytes: 1 << 20})
	key := "names/" + strings.Repeat("k", 60_000)
	args := []string{"EXISTS"}
	for range 17 {
		args = append(args, "names/"+strings.Repeat("q", 61_664))
	}
	for range 4 {
		c := s.dial(t)
		c.send(command(args...) + "PIN")
		if got := c.reply(); got != "0" {
			t.Fatal(got)
		}
		c.send("G\r\nPIN")
		if got := c.reply(); got != "PONG" {
			t.Fatal(got)
		}
	}
	c := s.dial(t)
	expect.Eventually(t, "a command of 60 KB is answered", func() bool { return c.do("EXISTS", key) == "0" })
}

// Commands do not keep the connection of a client that does not authenticate.
func TestStrangersDoNotStay(t *testing.T) {
	s := startNames(t, resp.Options{Read: 100 * time.Millisecond, Tokens: tokens(t, "one abcdefghijklmnopqrstuvwx *\n")})
	c := s.dial(t)
	expect.Eventually(t, "the connection is closed", func() bool {
		io.WriteString(c, "PIN")   //nolint:errcheck // fails at the end
		io.WriteString(c, "G\r\n") //nolint:errcheck // likewise
		return s.Connections() == 0
	})
}

// megabytes are eight values of 1 MiB, and two of one byte.
func megabytes() map[string]string {
	m := map[string]string{"small": "x", "small2": "y"}
	for i := range 8 {
		m[fmt.Sprintf("k%d", i)] = strings.Repeat("0123456789abcdef", 1<<20/16)
	}
	return m
}

// Clients that do not read the values of a batch do not keep the memory for batches from others.
func TestSlowReadersOfBatches(t *testing.T) {
	s := start(t, catalog{"db": setOf(t, "db", "v1", megabytes())},
		resp.Options{Write: time.Hour}, reads.Options{MaxBatchBytes: 8 << 20, HeldGrace: 50 * time.Millisecond})
	cmd := []string{"MGET"}
	for i := range 8 {
		cmd = append(cmd, fmt.Sprintf("db/k%d", i))
	}
	for range 8 {
		c := s.dial(t)
		defer c.Close()
		c.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		c.send(command(cmd...))
		if _, err := c.r.Peek(1); err != nil {
			t.Fatal(err)
		}
	}
	c := s.dial(t)
	expect.Eventually(t, "others are answered", func() bool { return c.do("MGET", "db/small", "db/small2") == "[x y]" })
}
