package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sequins/internal/conns"
	"sequins/internal/limitlog"
	"sequins/observe/metrics"
	"sequins/observe/peerstatus"
	"sequins/reads"
)

// Limits of requests.
const (
	// maxHeader limits the request line and the header together, in bytes: a key of 64 KiB with all bytes
	// escaped, and other fields.
	maxHeader = 256 << 10
	// maxFields limits the header without the request line, in bytes.
	maxFields = 32 << 10
	// responseBuffer holds a header and the largest value that is not streamed, so that one write sends both.
	responseBuffer = 68 << 10
)

// Server is an HTTP server for keys and status pages. It is safe for concurrent use.
type Server struct {
	catalog Catalog
	reads   *reads.Reader
	opts    Options
	limited *limitlog.Logger
	http    *http.Server
	open    conns.Set
	headers atomic.Int64       // bytes of long headers, see conn.hold
	log     *requestLog        // nil if disabled
	peers   *peerstatus.Client // nil on a single node

	ownStatus     *snapshot // of this node
	clusterStatus *snapshot // of all nodes; used only with peers

	peerSecret []byte // Options.PeerSecret
	delivery   atomic.Pointer[delivery]
	encoding   atomic.Int64 // answers that are being encoded

	requests sync.Pool // of *request

	// ending is canceled when Shutdown aborts the remaining requests.
	ending context.Context
	cancel context.CancelFunc
}

// New returns a server for a catalog and a reader.
func New(c Catalog, rd *reads.Reader, o Options) *Server {
	o.Timeouts.Read = cmp.Or(o.Timeouts.Read, 10*time.Second)
	o.Timeouts.Idle = cmp.Or(o.Timeouts.Idle, 2*time.Minute)
	o.Timeouts.Write = cmp.Or(o.Timeouts.Write, 30*time.Second)
	o.MaxConns = cmp.Or(o.MaxConns, 256<<10)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Metrics == nil {
		o.Metrics = metrics.New().Server
	}
	s := &Server{catalog: c, reads: rd, opts: o}
	s.limited = limitlog.New(s.opts.Logger)
	s.open.Max, s.open.Log = s.opts.MaxConns, s.limited
	s.peerSecret = []byte(s.opts.PeerSecret)
	s.SetDelivery(Delivery{})
	s.ending, s.cancel = context.WithCancel(context.Background())
	if o.RequestLog != nil {
		s.log = &requestLog{w: o.RequestLog, logger: s.opts.Logger}
	}
	s.requests.New = func() any { return &request{Read: rd.NewRead(), s: s} }
	if o.Peers != nil {
		s.peers = peerstatus.New(o.Peers, o.Nodes)
	}
	s.ownStatus, s.clusterStatus = &snapshot{take: s.status}, &snapshot{take: s.cluster}
	s.opts.Metrics.SetState(s.state)
	s.http = s.newHTTP()
	return s
}

// Serve serves the connections of ln until Shutdown, and then returns nil. It returns an error if accepting
// fails. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	return s.open.Serve(ln, s.admit)
}

// Connections returns the listeners and connections that Shutdown closes. Another front end may add its own.
func (s *Server) Connections() *conns.Set { return &s.open }

// Drain makes /readyz fail and closes each connection after its next answer. Requests are still answered.
func (s *Server) Drain() { s.open.Drain() }

// Shutdown drains, closes the listeners and idle connections, and waits for the requests in flight. If ctx
// ends first, it aborts them and returns an error that wraps that of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	defer s.cancel()
	defer s.opts.Nodes.Close()
	s.open.Close()
	s.open.Hurry()
	s.http.SetKeepAlivesEnabled(false) // closes idle connections of http
	err := s.open.Wait(ctx)            // for the loops of plain requests and the connections that are being handed over
	if err == nil {
		err = s.http.Shutdown(ctx)
	}
	if err != nil {
		err = fmt.Errorf("finishing the requests of %d connections: %w", s.open.Count(), err)
		s.cancel()
		s.reads.Stop()
		s.open.CloseAll()
		s.http.Close() //nolint:errcheck // of the connections, which are closed
	}
	return err
}

// SetRequestLogSample logs a random 1-in-n sample of later requests; 0 and 1 log all.
func (s *Server) SetRequestLogSample(n int) {
	if s.log != nil {
		s.log.sample.Store(uint32(min(max(n, 1), math.MaxUint32)))
	}
}
