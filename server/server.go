package server

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"sequins/internal/limitlog"
	"sequins/reads"
)

// Limits of a request.
const (
	// maxHeader is what the request line and the headers may have together: a
	// key of 64 KiB in which every byte is escaped, and the rest of them.
	maxHeader = 256 << 10
	// maxFields is what the headers may have without the request line.
	maxFields = 32 << 10
	// responseBuffer takes a header and the largest value that is not
	// streamed, so that they go out in one write.
	responseBuffer = 68 << 10
)

// Server answers HTTP. It is safe for concurrent use.
type Server struct {
	catalog Catalog
	reads   *reads.Reader
	opts    Options
	limited *limitlog.Logger
	http    *http.Server
	handed  *handedConns   // to http
	lanes   sync.WaitGroup // the goroutines that accept connections, and those of connections that http does not have
	handing sync.WaitGroup // connections on their way to http
	running sync.WaitGroup // http
	open    connections
	log     *requestLog // nil: off
	survey  *survey     // nil: there are no other nodes

	ownStatus     *snapshot // of this node
	clusterStatus *snapshot // of all nodes; only where there is a survey

	peerSecret []byte // Options.PeerSecret
	draining   atomic.Bool
	holding    atomic.Bool
	closing    atomic.Bool // Shutdown has been called; it is changed under mu
	date       dateCache

	mu        sync.Mutex // of what follows
	listeners []net.Listener

	requests sync.Pool // of *request

	refused    atomic.Int64 // connections beyond Options.MaxConns
	handshakes atomic.Int64 // of TLS that have failed

	// ending is canceled when Shutdown gives up on the requests in flight.
	ending context.Context
	cancel context.CancelFunc
}

// New returns a server of what the catalog has and the reader reads.
func New(c Catalog, rd *reads.Reader, o Options) *Server {
	s := &Server{catalog: c, reads: rd, opts: o.withDefaults(), handed: newHandedConns()}
	s.limited = limitlog.New(s.opts.Logger)
	s.peerSecret = []byte(s.opts.PeerSecret)
	s.ending, s.cancel = context.WithCancel(context.Background())
	if o.RequestLog != nil {
		s.log = &requestLog{w: o.RequestLog, logger: s.opts.Logger}
		s.SetRequestLogSample(o.RequestLogSample)
	}
	s.requests.New = func() any { return &request{Read: rd.NewRead(), s: s} }
	if o.Peers != nil {
		s.survey = newSurvey(o.Peers, o.PeerTLS, o.PeerSecret)
	}
	s.ownStatus, s.clusterStatus = &snapshot{take: s.status}, &snapshot{take: s.cluster}
	s.opts.Metrics.SetState(s.gauges)
	s.http = s.newHTTP()
	return s
}

// Serve answers the connections of ln until Shutdown, and then returns nil; any other end is an error. It
// closes ln.
func (s *Server) Serve(ln net.Listener) error {
	defer ln.Close() //nolint:errcheck // Shutdown closes it, too
	if !s.listen(ln) {
		return nil
	}
	defer s.lanes.Done()
	if err := s.accept(ln); !s.closing.Load() {
		return fmt.Errorf("serving on %s: %w", ln.Addr(), err)
	}
	return nil
}

// listen takes a listener that Shutdown is to close. It returns false if that has been called.
func (s *Server) listen(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.lanes.Add(1)
	if s.listeners = append(s.listeners, ln); len(s.listeners) == 1 {
		s.running.Go(func() { s.http.Serve(s.handed) }) //nolint:errcheck // it ends with Shutdown
	}
	return true
}

// Hold answers requests for keys with 503 until Admit, so that nobody takes a db
// for missing that is only not open yet. Status and health are answered.
func (s *Server) Hold() { s.holding.Store(true) }

// Admit ends Hold.
func (s *Server) Admit() { s.holding.Store(false) }

// Drain makes /readyz fail and tells every client that its connection ends
// with the next answer. Requests are answered as before.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown drains, closes the listeners and the idle connections and waits for the requests in flight. When
// ctx ends first, it cuts them off and returns an error that wraps ctx's.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	defer s.cancel()
	if s.survey != nil {
		defer s.survey.close()
	}
	s.closeListeners()
	s.open.hurry()
	s.http.SetKeepAlivesEnabled(false) // closes those of http that are idle
	err := s.finish(ctx)
	if err != nil {
		err = fmt.Errorf("finishing the requests of %d connections: %w", s.open.count(), err)
		s.cancel()
		s.reads.Stop()
		s.open.closeAll()
		s.http.Close() //nolint:errcheck // of the connections, which are closed
	}
	s.running.Wait()
	return err
}

// finish waits for the requests in flight: at first for those in the lane, and for connections that it
// hands over.
func (s *Server) finish(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.lanes.Wait()
		s.handing.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.http.Shutdown(ctx)
}

func (s *Server) closeListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing.Store(true)
	for _, ln := range s.listeners {
		ln.Close() //nolint:errcheck // Serve closes it again
	}
}

// SetRequestLogSample replaces Options.RequestLogSample, for the requests from
// now on.
func (s *Server) SetRequestLogSample(n int) {
	if s.log != nil {
		s.log.sample.Store(uint32(min(max(n, 1), math.MaxUint32)))
	}
}
