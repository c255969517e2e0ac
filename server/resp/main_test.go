package resp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/internal/conns"
	"sequins/internal/limitlog"
	"sequins/reads"
	"sequins/server/auth"
	"sequins/server/resp"
	"sequins/shard"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// catalog has sets by name; "perhaps" may exist elsewhere.
type catalog map[string]*version.Set

func (c catalog) Set(db []byte) *version.Set { return c[string(db)] }
func (c catalog) MayExist(db []byte) bool    { return string(db) == "perhaps" }

// setOf returns a set with a current version in two partitions, of which those in absent are not here.
func setOf(t testing.TB, db, name string, records map[string]string, absent ...int) *version.Set {
	t.Helper()
	v := version.New(version.Info{DB: db, Content: contents.Of(name), Partitions: 2, Partitioner: shard.String, Following: version.Solo{}})
	versions.Put(t, v, records, func(p int) bool { return !slices.Contains(absent, p) })
	set := version.NewSet(db)
	versions.Activate(t, set, v)
	return set
}

var large = strings.Repeat("0123456789abcdef", 20<<10)

// records are those of the db names.
func records() map[string]string {
	m := map[string]string{"": "empty key", "empty": "", "large": large, "a/b": "slash", "bin\x00\r\n": "\x00\r\n$-1\r\n", "medium": large[:70<<10]}
	for i := range 1000 {
		m[fmt.Sprintf("key-%d", i)] = fmt.Sprintf("value-%d", i)
	}
	return m
}

// started is a server with its listener.
type started struct {
	*resp.Server
	addr  string
	conns *conns.Set
	reads *reads.Reader
	done  chan error
}

// Connections returns the number of open connections.
func (s *started) Connections() int { return s.conns.Count() }

// Shutdown ends the connections as the shutdown of a node does.
func (s *started) Shutdown(ctx context.Context) error {
	s.conns.Drain()
	s.conns.Close()
	s.conns.Hurry()
	err := s.conns.Wait(ctx)
	if err != nil {
		s.reads.Stop()
		s.conns.CloseAll()
		s.conns.Wait(context.Background())
	}
	return err
}

var quiet = slog.New(slog.DiscardHandler)

// start serves the db names, and others.
func start(t testing.TB, sets catalog, o resp.Options, ro reads.Options) *started {
	t.Helper()
	ro.Logger, o.Logger = quiet, quiet
	rd := reads.New(sets, ro)
	o.Exists = func(db []byte) bool { return sets.Set(db) != nil || sets.MayExist(db) }
	if o.Conns == nil {
		o.Conns = &conns.Set{Max: 1000, Log: limitlog.New(quiet)}
	}
	s := &started{Server: resp.New(rd, o), conns: o.Conns, reads: rd, done: make(chan error, 1)}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	s.addr = ln.Addr().String()
	go func() { s.done <- s.Serve(conns.Patient(ln, quiet)) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		rd.Stop()
	})
	return s
}

func startNames(t testing.TB, o resp.Options) *started {
	t.Helper()
	return start(t, catalog{"names": setOf(t, "names", "v2", records()), "other": setOf(t, "other", "w1", map[string]string{"x": "other x"}), "none": version.NewSet("none"),
		"half": setOf(t, "half", "h1", records(), 1)}, o, reads.Options{})
}

// client is a connection for tests.
type client struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (s *started) dial(t testing.TB) *client {
	t.Helper()
	nc, err := net.Dial("tcp", s.addr)
	expect.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(time.Minute))
	return &client{t, nc, bufio.NewReader(nc)}
}

// command renders a command.
func command(args ...string) string {
	s := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		s += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	return s
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatal(err)
	}
}

// do sends a command and returns its answer as text.
func (c *client) do(args ...string) string {
	c.t.Helper()
	c.send(command(args...))
	return c.reply()
}

// reply reads one answer as text: an array as [a b], null as nil.
func (c *client) reply() string {
	c.t.Helper()
	s, err := parseReply(c.r)
	expect.NoError(c.t, err)
	return s
}

func parseReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(line, "\r\n") {
		return "", fmt.Errorf("line %q", line)
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "-" + rest, nil
	case '_':
		return "nil", nil
	}
	n, err := strconv.Atoi(rest)
	switch {
	case err != nil:
		return "", fmt.Errorf("line %q", line)
	case n < 0:
		return "nil", nil
	}
	switch kind {
	case '$', '=':
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil || string(b[n:]) != "\r\n" {
			return "", fmt.Errorf("a value of %d bytes: %q, %w", n, b, err)
		}
		return string(b[:n]), nil
	case '%':
		return parseReplies(r, 2*n)
	case '*', '~':
		return parseReplies(r, n)
	}
	return "", fmt.Errorf("line %q", line)
}

func parseReplies(r *bufio.Reader, n int) (string, error) {
	parts := make([]string, n)
	for i := range parts {
		var err error
		if parts[i], err = parseReply(r); err != nil {
			return "", err
		}
	}
	return "[" + strings.Join(parts, " ") + "]", nil
}

// closed checks that the server has closed the connection.
func (c *client) closed() {
	c.t.Helper()
	if b, err := c.r.ReadByte(); err != io.EOF {
		c.t.Errorf("%q, %v; want the end of the connection", b, err)
	}
}

func tokens(t testing.TB, doc string) *auth.Tokens {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	expect.NoError(t, os.WriteFile(file, []byte(doc), 0o600))
	all, err := auth.Open(file)
	expect.NoError(t, err)
	return all
}
