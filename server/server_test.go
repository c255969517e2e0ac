package server

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/internal/conns"
	"sequins/internal/wire"
	"sequins/observe/metrics"
	"sequins/observe/status"
	"sequins/observe/tracing"
	"sequins/reads"
	"sequins/server/auth"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// testOptions are the options of a server and of its reader.
type testOptions struct {
	ContentType      func(db string) string
	RequestLog       io.Writer
	RequestLogSample int
	Timeouts         Timeouts
	MaxConns         int
	Name             string
	MaxBatchKeys     int
	MaxBatchBytes    int64
	Proxy            reads.Proxy
	Peers            func() []status.Peer
	PeerSecret       string
	Tokens           *auth.Tokens
	Delivery         Delivery
	Metrics          *metrics.Server
	Tracer           *tracing.Tracer
	Logger           *slog.Logger
}

// testCatalog is the catalog of a node, for a server and its reader.
type testCatalog interface {
	Catalog
	reads.Catalog
}

func newServer(c testCatalog, o testOptions) *Server {
	if o.Metrics == nil {
		o.Metrics = metrics.New().Server
	}
	rd := reads.New(c, reads.Options{
		ContentType: o.ContentType, Name: o.Name, Proxy: o.Proxy, PeerSecret: o.PeerSecret, Metrics: o.Metrics, Tracer: o.Tracer, Logger: o.Logger,
		MaxBatchKeys: o.MaxBatchKeys, MaxBatchBytes: o.MaxBatchBytes,
	})
	s := New(c, rd, Options{
		Diff: func(context.Context, http.ResponseWriter, string, string, bool) (int, string) {
			return 501, "this node does not compare versions"
		},
		Blocks: func(http.ResponseWriter, *http.Request, string, string) (int, string) {
			return 501, "this node gives no blocks"
		},
		RequestLog: o.RequestLog, Timeouts: o.Timeouts, MaxConns: o.MaxConns,
		Peers: o.Peers, Nodes: wire.NewClient(nil, o.PeerSecret), PeerSecret: o.PeerSecret, Tokens: o.Tokens, Metrics: o.Metrics, Logger: o.Logger,
	})
	s.SetDelivery(o.Delivery)
	s.SetRequestLogSample(o.RequestLogSample)
	return s
}

// catalog is a node's, with sets that tests fill.
type catalog struct {
	mu     sync.Mutex
	sets   map[string]*version.Set
	state  status.Status
	reason string // why not ready
	events map[string][]status.Event
}

func (c *catalog) Set(db []byte) *version.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sets[string(db)]
}

func (c *catalog) Status() status.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.state
	st.DBs = make(map[string]status.DB)
	for name, db := range c.state.DBs {
		db.Versions = maps.Clone(db.Versions)
		for v, vs := range db.Versions {
			vs.Nodes = maps.Clone(vs.Nodes)
			db.Versions[v] = vs
		}
		st.DBs[name] = db
	}
	return st
}

func (c *catalog) MayExist(db []byte) bool { return string(db) == "perhaps" }

func (c *catalog) Events(db string) []status.Event { return c.events[db] }

func (c *catalog) Ready(db string) (bool, string) {
	if db != "" && c.Set([]byte(db)) == nil {
		return false, "there is no " + db
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason == "", c.reason
}

func (c *catalog) remove(db string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sets, db)
}

// peersOnly is a version whose partitions are all on other nodes.
type peersOnly struct {
	version.Solo
	peers []string
}

func (p peersOnly) Peers(int) []string { return p.peers }

// modified is the Last-Modified of the versions in tests.
var modified = time.Date(2026, 1, 31, 10, 0, 0, 123456789, time.UTC)

// versionOf builds a version of one or more partitions, in real blocks.
func versionOf(t testing.TB, db, name string, partitions int, records map[string]string) *version.Version {
	t.Helper()
	return versionWith(t, version.Info{DB: db, Content: contents.Of(name), Partitions: partitions, LastModified: modified, Following: version.Solo{}}, records)
}

func versionWith(t testing.TB, info version.Info, records map[string]string) *version.Version {
	t.Helper()
	v := version.New(info)
	versions.Put(t, v, records, versions.All)
	return v
}

// patience is how long something may take that has to happen, on a busy machine.
const patience = time.Minute

// closeVersion fails if somebody still holds the version.
func closeVersion(t testing.TB, v *version.Version) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := v.Close(ctx); err != nil {
		t.Error(err)
	}
}

// catalogOf has one db, "db", with one version, "v1", of two partitions.
func catalogOf(t testing.TB, records map[string]string) *catalog {
	t.Helper()
	set := version.NewSet("db")
	versions.Activate(t, set, versionOf(t, "db", "v1", 2, records))
	return &catalog{sets: map[string]*version.Set{"db": set}}
}

// running is a server that listens.
type running struct {
	*Server
	addr string
	logs *expect.Output
	done chan error
}

// start serves a catalogue until the end of the test.
func start(t testing.TB, c testCatalog, o testOptions) *running {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	return startOn(t, conns.Patient(ln, slog.New(slog.DiscardHandler)), c, o)
}

func startOn(t testing.TB, ln net.Listener, c testCatalog, o testOptions) *running {
	t.Helper()
	l := new(expect.Output)
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(l, nil))
	}
	r := &running{Server: newServer(c, o), addr: ln.Addr().String(), logs: l, done: make(chan error, 1)}
	go func() { r.done <- r.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		r.reads.Stop()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// dial opens a connection that is closed at the end of the test.
func (s *running) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	expect.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	expect.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

// answer is a response that has been read.
type answer struct {
	status int
	header http.Header
	body   string
	length int64
	closed bool // the server will close the connection
}

// raw sends bytes as they are and reads one response to the given method.
func (s *running) raw(t testing.TB, method, request string) answer {
	t.Helper()
	c := s.dial(t)
	go io.WriteString(c, request) //nolint:errcheck // the server may refuse it before it is whole
	return read(t, bufio.NewReader(c), method)
}

func read(t testing.TB, r *bufio.Reader, method string) answer {
	t.Helper()
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("reading the response: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the body: %v", err)
	}
	return answer{resp.StatusCode, resp.Header, string(body), resp.ContentLength, resp.Close}
}

// get asks for a target as it stands, with headers as lines without their ends.
func (s *running) get(t testing.TB, target string, headers ...string) answer {
	t.Helper()
	return s.do(t, "GET", target, headers...)
}

func (s *running) do(t testing.TB, method, target string, headers ...string) answer {
	t.Helper()
	lines := append([]string{method + " " + target + " HTTP/1.1", "Host: x"}, headers...)
	return s.raw(t, method, strings.Join(lines, "\r\n")+"\r\n\r\n")
}
