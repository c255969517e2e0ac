package server

import (
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"sequins/auth"
	"sequins/blocks"
	"sequins/internal/http1"
	"sequins/metrics"
	"sequins/proxy"
	"sequins/tracing"
	"sequins/version"
)

// request is what has to be remembered of one request until it has been
// answered. It is pooled; what is a slice keeps its memory.
type request struct {
	s      *Server
	stripe uint32               // of the metrics: the pool gives a request to the core that had it last
	conn   *conn                // nil only in tests
	ctx    *fasthttp.RequestCtx // nil: the request is plain
	start  time.Time
	target target
	counts *metrics.Requests

	grant  *auth.Grant     // what the token allows; nil if there was none that is known
	db     *database       // nil until it is known
	handle *version.Handle // to be released at the end
	// answered is a peer's answer, to be closed at the end; nil mostly.
	answered io.ReadCloser
	// streaming: the end of the body is that of the request; see stream.
	streaming bool
	closing   bool // a plain request is answered with Connection: close
	small     smallBody

	code  int
	bytes int64            // of the body
	trace *tracing.Request // nil: it is not traced

	// What follows is for the request log, and measured if logged says that
	// there will be a line.
	logged bool
	lookup time.Duration // from the start until the block had answered; 0: none was asked
	asking time.Duration // from there until a peer had answered, or none; 0: none was asked

	buf      []byte // holds what of the target had to be decoded
	etag     []byte
	rendered []byte // the answer to a plain request
	value    []byte // what follows it, if it is not copied
	scratch  blocks.Scratch
	reads    uint64      // of scratch, that have been counted
	query    proxy.Query // what peers are asked
}

// take begins a request that fasthttp has read.
func (r *request) take(ctx *fasthttp.RequestCtx, start time.Time) {
	r.ctx = ctx
	c, _ := ctx.Conn().(*conn)
	if c != nil {
		c.unhandled = false
	}
	r.begin(c, start)
}

func (r *request) begin(c *conn, start time.Time) {
	r.conn, r.start = c, start
	r.counts = r.s.opts.Metrics.Invalid
	r.s.opts.Metrics.Begin(r.stripe)
	r.logged = r.s.log != nil && r.s.log.chosen()
}

// leave is the end of the handler, and of the request unless its body is
// streamed.
func (r *request) leave() {
	if p := recover(); p != nil {
		r.s.trouble("panic while answering a request", "target", r.escaped(), "panic", p, "stack", string(debug.Stack()))
		r.ctx.Response.Reset() // nothing is streamed yet: that is the last thing a handler does
		r.ctx.SetConnectionClose()
		r.fail(http.StatusInternalServerError, "internal error")
	}
	if !r.streaming {
		r.end()
	}
}

// end counts and logs the request and gives back all that it holds.
func (r *request) end() {
	r.count()
	r.letGo()
}

// count counts and logs the request, and returns how long it has taken.
func (r *request) count() time.Duration {
	s := r.s
	d := time.Since(r.start)
	s.opts.Metrics.End(r.stripe)
	r.counts.Done(r.stripe, r.code, d, r.bytes)
	if n := r.scratch.Reads(); n != r.reads {
		r.counts.Read(r.stripe, n-r.reads)
		r.reads = n
	}
	if r.logged {
		s.log.write(r, d)
	}
	if r.trace != nil {
		r.endTrace()
	}
	return d
}

// release lets go of what the value lies in: the version, or the connection to a peer.
func (r *request) release() {
	if r.handle != nil {
		r.handle.Release()
		r.handle = nil
	}
	if r.answered != nil {
		r.answered.Close() //nolint:errcheck // it has been passed on, or cannot be
		r.answered = nil
	}
}

// letGo gives back all that the request holds, and itself.
func (r *request) letGo() {
	r.release()
	r.conn, r.ctx, r.db, r.grant = nil, nil, nil, nil
	r.trace, r.query.Trace = nil, nil
	r.value = nil
	r.streaming, r.closing = false, false
	r.target = target{}
	r.code, r.bytes = 0, 0
	r.lookup, r.asking = 0, 0
	if cap(r.buf) > readAhead {
		r.buf = nil
	}
	if cap(r.rendered) > 4*readAhead {
		r.rendered = nil
	}
	r.s.requests.Put(r)
}

// wantsClose reports whether the connection ends with the answer: because the
// client says so, in any letter case or in a list, or because there are too many.
func (r *request) wantsClose() bool {
	if r.conn != nil && r.conn.crowded {
		return true
	}
	for _, v := range r.ctx.Request.Header.PeekAll("Connection") {
		if http1.HasToken(v, "close") {
			return true
		}
	}
	return false
}

// method is that of the request.
func (r *request) method() []byte {
	if r.ctx == nil {
		return methodGet
	}
	return r.ctx.Method()
}

var methodGet = []byte("GET")

// fail answers with an error: a status and one line that says what is wrong.
func (r *request) fail(code int, message string) {
	resp := &r.ctx.Response
	resp.SetStatusCode(code)
	resp.Header.SetContentType(plainText)
	resp.SetBodyString(message)
	resp.AppendBodyString("\n")
	r.code, r.bytes = code, int64(len(message)+1)
	if r.ctx.IsHead() {
		resp.SkipBody = true
		r.bytes = 0
	}
}

const plainText = "text/plain; charset=utf-8"

func (r *request) methodNotAllowed() {
	r.ctx.Response.Header.Set("Allow", "GET, HEAD")
	r.fail(http.StatusMethodNotAllowed, "only GET and HEAD are allowed")
}

// escaped is the target as a person would type it, for logs: nothing that could
// break a line, and not longer than a line should be.
func (r *request) escaped() string {
	return string(r.appendEscaped(nil))
}

const maxLoggedKey = 1 << 10

func (r *request) appendEscaped(b []byte) []byte {
	t := &r.target
	switch {
	case t.path == nil: // it could not be read
		return append(b, '-')
	case t.route != routeKey:
		return appendEscaped(b, t.path)
	}
	b = appendEscaped(append(b, '/'), t.db)
	b = appendEscaped(append(b, '/'), t.key[:min(len(t.key), maxLoggedKey)])
	if len(t.key) > maxLoggedKey {
		b = append(b, "..."...)
	}
	return b
}

// appendEscaped percent-escapes what is no letter, digit or one of -._~/:@
func appendEscaped(b, s []byte) []byte {
	for _, c := range s {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '-', c == '.', c == '_', c == '~', c == '/', c == ':', c == '@':
			b = append(b, c)
		default:
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return b
}

const hexDigits = "0123456789ABCDEF"
