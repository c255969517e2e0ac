package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
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
	opts    Options
	http    *fasthttp.Server
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

	contentType atomic.Pointer[func(db string) string]
	databases   atomic.Pointer[map[string]*database]
	mu          sync.Mutex // of changes to databases, and of what follows
	listeners   []*listener

	requests sync.Pool // of *request
	stripes  atomic.Uint32
	troubled atomic.Int64 // see trouble

	refused    atomic.Int64 // connections beyond Options.MaxConns
	handshakes atomic.Int64 // of TLS that have failed

	// ending is cancelled when Shutdown gives up on the requests in flight.
	ending context.Context
	cancel context.CancelFunc
}

// New returns a server of what the catalogue has.
func New(c Catalog, o Options) *Server {
	s := &Server{catalog: c, opts: o.withDefaults()}
	s.peerSecret = []byte(s.opts.PeerSecret)
	s.ending, s.cancel = context.WithCancel(context.Background())
	s.databases.Store(&map[string]*database{})
	s.SetContentType(o.ContentType)
	if o.RequestLog != nil {
		s.log = &requestLog{w: o.RequestLog, logger: s.opts.Logger}
		s.SetRequestLogSample(o.RequestLogSample)
	}
	s.requests.New = func() any {
		r := &request{s: s, stripe: s.stripes.Add(1)}
		r.small.r = r
		return r
	}
	if o.Peers != nil {
		s.survey = newSurvey(o.Peers, o.PeerTLS, o.PeerSecret)
	}
	s.ownStatus, s.clusterStatus = &snapshot{take: s.status}, &snapshot{take: s.cluster}
	s.opts.Metrics.SetState(s.gauges)
	s.http = &fasthttp.Server{
		Handler:      s.handle,
		ErrorHandler: s.refuse,
		Logger:       quiet{s.opts.Logger},
		Concurrency:  s.opts.MaxConns + 2*reservedConns, // never reached: see listener

		ReduceMemoryUsage: true, // see conn, which has all deadlines, too

		// A goroutine of fasthttp lives on for this long after Shutdown.
		MaxIdleWorkerDuration: 250 * time.Millisecond,

		ReadBufferSize:  maxHeader,
		WriteBufferSize: responseBuffer,
		HeaderReceived:  ignoreBody,

		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true, // see quiet
	}
	return s
}

// Serve answers the connections of ln until Shutdown, and then returns nil;
// any other end is an error. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	l := newListener(ln, s)
	s.mu.Lock()
	if s.closing.Load() {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	if err := s.http.Serve(l); err != nil {
		l.Close() //nolint:errcheck // it is broken
		return fmt.Errorf("serving on %s: %w", ln.Addr(), err)
	}
	return nil
}

// Hold answers requests for keys with 503 until Admit, so that nobody takes a db
// for missing that is only not open yet. Status and health are answered.
func (s *Server) Hold() { s.holding.Store(true) }

// Admit ends Hold.
func (s *Server) Admit() { s.holding.Store(false) }

// Drain makes /readyz fail and tells every client that its connection ends
// with the next answer. Requests are answered as before.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown drains, closes the listeners and the idle connections and waits for
// the requests in flight. When ctx ends first, it cuts them off and returns an
// error that wraps ctx's.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	defer s.cancel()
	if s.survey != nil {
		defer s.survey.close()
	}
	s.closeListeners()
	s.open.hurry()
	if err := s.http.ShutdownWithContext(ctx); err != nil {
		n := s.open.count()
		s.cancel()
		s.open.closeAll()
		return fmt.Errorf("finishing the requests of %d connections: %w", n, err)
	}
	return nil
}

// closeListeners closes those that fasthttp may not know of yet, too.
func (s *Server) closeListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing.Store(true)
	for _, l := range s.listeners {
		l.Close() //nolint:errcheck // Shutdown closes it again, and returns the error
	}
}

// SetContentType replaces Options.ContentType, for the requests from now on.
func (s *Server) SetContentType(f func(db string) string) {
	if f == nil {
		f = func(string) string { return "" }
	}
	s.contentType.Store(&f)
}

// SetRequestLogSample replaces Options.RequestLogSample, for the requests from
// now on.
func (s *Server) SetRequestLogSample(n int) {
	if s.log != nil {
		s.log.sample.Store(uint32(min(max(n, 1), math.MaxUint32)))
	}
}

// handle is what fasthttp calls with a request that could be read, and that is not
// plain or cannot be answered as if it were. Nothing of
// a request may end the process: a panic is a bug, and this request's 500.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	r := s.requests.Get().(*request)
	r.take(ctx, ctx.Time())
	defer r.leave()
	if s.draining.Load() || r.wantsClose() {
		ctx.SetConnectionClose()
	}
	if h := &ctx.Request.Header; h.ContentLength() == 0 && h.ConnectionClose() {
		linger(ctx) // there may be a body: see ignoreBody
	}
	if len(ctx.Request.Header.RawHeaders()) > maxFields {
		r.fail(http.StatusRequestHeaderFieldsTooLarge, "the request's headers are larger than 32 KiB")
		return
	}
	var err error
	r.target, r.buf, err = parseTarget(ctx.Request.Header.RequestURI(), r.buf)
	if s.opts.Tracer != nil {
		r.beginTrace()
	}
	switch {
	case !ctx.IsGet() && !ctx.IsHead():
		r.methodNotAllowed()
	case errors.Is(err, errKeyTooLong):
		r.fail(http.StatusRequestURITooLong, err.Error())
	case err != nil:
		r.fail(http.StatusBadRequest, err.Error())
	case r.conn != nil && r.conn.crowded && !r.target.route.isProbe():
		ctx.Response.Header.Set("Retry-After", "1")
		r.fail(http.StatusServiceUnavailable, "this node has too many connections")
	case !r.allowed(): // and so it has been answered
	case r.target.route == routeKey && s.holding.Load():
		ctx.Response.Header.Set("Retry-After", "1")
		r.fail(http.StatusServiceUnavailable, "this node is starting")
	case r.target.route == routeKey:
		r.serveKey()
	default:
		r.servePage()
	}
}

// refuse is what fasthttp calls with a request that could not be read. The
// connection is closed after the answer.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	r := s.requests.Get().(*request)
	r.take(ctx, time.Now())
	defer r.leave()
	c := linger(ctx)
	var tooLong *fasthttp.ErrSmallBuffer
	var timeout net.Error
	switch {
	case errors.As(err, &tooLong) && c != nil && c.longLine:
		r.fail(http.StatusRequestURITooLong, "the request line is longer than 256 KiB")
	case errors.As(err, &tooLong):
		r.fail(http.StatusRequestHeaderFieldsTooLarge, "the request's headers are larger than 32 KiB")
	case errors.As(err, &timeout) && timeout.Timeout():
		r.fail(http.StatusRequestTimeout, "the request took too long to arrive")
	default:
		r.fail(http.StatusBadRequest, "malformed request")
	}
}

// ignoreBody keeps fasthttp from waiting for a body. No request here has one; if
// it does, the connection ends with the answer.
func ignoreBody(h *fasthttp.RequestHeader) (unchanged fasthttp.RequestConfig) {
	if n := h.ContentLength(); n > 0 || n == -1 {
		h.SetContentLength(0)
		h.SetConnectionClose()
		h.Del("Expect") // it gets the answer instead of "100 Continue"
	}
	return unchanged
}

// linger is called where the client may still be sending while it is answered
// for the last time.
func linger(ctx *fasthttp.RequestCtx) *conn {
	c, ok := ctx.Conn().(*conn)
	if ok {
		c.lingering.Store(true)
	}
	return c
}

// trouble logs what went wrong with a request, once a second at most: what is
// wrong with one is mostly wrong with thousands.
func (s *Server) trouble(msg string, args ...any) {
	now := time.Now().Unix()
	if last := s.troubled.Load(); last != now && s.troubled.CompareAndSwap(last, now) {
		s.opts.Logger.Error(msg, args...)
	}
}

// quiet is fasthttp's logger. What it says of single connections is of use
// only to somebody who is looking for it. What it quotes of them is left out: that
// may be a token.
type quiet struct{ *slog.Logger }

var quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// Printf implements fasthttp.Logger.
func (q quiet) Printf(format string, args ...any) {
	if q.Enabled(context.Background(), slog.LevelDebug) {
		q.Debug("http: " + quoted.ReplaceAllString(fmt.Sprintf(format, args...), `"…"`))
	}
}
