package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sequins/internal/wire"
	"sequins/proxy"
	"sequins/reads"
)

// newHTTP returns the http.Server for requests that are not plain.
func (s *Server) newHTTP() *http.Server {
	t := s.opts.Timeouts
	return &http.Server{
		Handler:                      http.HandlerFunc(s.handle),
		ReadHeaderTimeout:            t.Read,
		ReadTimeout:                  t.Read,
		IdleTimeout:                  t.Idle,
		MaxHeaderBytes:               maxHeader,
		ConnState:                    s.changed,
		ConnContext:                  func(ctx context.Context, nc net.Conn) context.Context { return context.WithValue(ctx, connKey{}, nc) },
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelDebug),
	}
}

type connKey struct{}

func (s *Server) handle(w http.ResponseWriter, req *http.Request) {
	r := s.requests.Get().(*request)
	c, _ := req.Context().Value(connKey{}).(*conn)
	if c != nil {
		c.taken()
		c.unhandled = false
		c.inHeader.Store(false)
	}
	r.begin(c, req.Method)
	out := &writer{ResponseWriter: w, r: r}
	defer out.leave()
	a := askedOf(req)
	var err error
	r.target, r.buf, err = parseTarget(a.uri, r.buf)
	r.op, r.unknown = r.target.operation(req.Method)
	r.arrived(a)
	out.negotiate(req)
	posted := err == nil && r.op == opBatch && req.Method == http.MethodPost
	if r.closing || req.ContentLength != 0 && !posted { // only batches have a body; others are not read
		w.Header().Set("Connection", "close")
	}
	switch {
	case headerSize(req.Header) > maxFields:
		r.fail(http.StatusRequestHeaderFieldsTooLarge, "the request's headers are larger than 32 KiB")
	case r.isPreflight(req):
		r.answerPreflight(out)
		return
	case r.isCheck(err):
		if !r.answerCheck(out) {
			return
		}
	case req.Method == "PRI": // with which HTTP/2 begins
		r.fail(http.StatusHTTPVersionNotSupported, "this port speaks HTTP/1.1, and not HTTP/2")
	case req.Method != http.MethodGet && req.Method != http.MethodHead && !posted:
		w.Header().Set("Allow", r.methods())
		r.fail(http.StatusMethodNotAllowed, "the methods that are allowed are "+r.methods())
	case len(req.Header[wire.AtLeast]) > 1 || len(req.Header[wire.Version]) > 1:
		r.fail(http.StatusBadRequest, wire.AtLeast+" and "+wire.Version+" must not be repeated")
	case errors.Is(err, errKeyTooLong):
		r.fail(http.StatusRequestURITooLong, err.Error())
	case err != nil:
		r.fail(http.StatusBadRequest, err.Error())
	case c != nil && c.crowded && !r.target.route.isProbe():
		r.add("Retry-After", retryAfter)
		r.fail(http.StatusServiceUnavailable, "this node has too many connections")
	default:
		if !r.serve(out, req) {
			return
		}
	}
	r.respond(out, req)
}

// serve answers the request, or prepares the answer and returns true.
func (r *request) serve(w *writer, req *http.Request) (prepared bool) {
	if r.op < opUnknown && !r.mayRead() {
		return true
	}
	switch r.op {
	case opGet:
		r.prepare(r.read(conditions(req.Header)))
		return true
	case opExplain:
		return r.serveExplanation(w)
	case opScan:
		return r.serveScan(w, req)
	case opBatch:
		return r.serveBatch(w, req)
	case opPartitions:
		return r.servePartitions(w)
	case opBlocks:
		return r.serveBlocks(w, req)
	case opDiff:
		return r.serveDiff(w, req)
	}
	return r.servePage(w)
}

// askedOf returns the header fields that are used. A traceparent that occurs several times is ignored.
func askedOf(req *http.Request) asked {
	field := func(name string) []byte {
		if lines := req.Header[name]; len(lines) == 1 {
			return []byte(lines[0])
		}
		return nil
	}
	return asked{
		uri:           []byte(req.RequestURI),
		authorization: []byte(req.Header.Get("Authorization")),
		traceparent:   field(wire.Traceparent),
		tracestate:    []byte(strings.Join(req.Header[wire.Tracestate], ",")),
		content:       []byte(req.Header.Get(wire.Content)),
		secret:        []byte(req.Header.Get(wire.Secret)),
		atLeast:       []byte(req.Header.Get(wire.AtLeast)),
		exact:         []byte(req.Header.Get(wire.Version)),
		accept:        []byte(strings.Join(req.Header["Accept"], ",")),
		origin:        []byte(req.Header.Get("Origin")),
	}
}

// headerSize returns the approximate length of a header in bytes, without the request line.
func headerSize(h http.Header) (n int) {
	for name, lines := range h {
		for _, line := range lines {
			n += len(name) + len(": \r\n") + len(line)
		}
	}
	return n
}

// conditions returns the conditional fields and ranges of a request. They are forwarded to peers.
func conditions(h http.Header) (all []proxy.Field) {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Range", "Range"} {
		for _, line := range h[name] {
			all = append(all, proxy.Field{Name: name, Value: []byte(line)})
		}
	}
	return all
}

// respond sends the prepared answer.
func (r *request) respond(w *writer, req *http.Request) {
	h, values := w.Header(), make([]string, len(r.fields))
	for i, f := range r.fields { // like Header.Set, with one allocation for all
		values[i] = string(f.value)
		h[http.CanonicalHeaderKey(f.name)] = values[i : i+1 : i+1]
	}
	switch {
	case r.text != "":
		send(w, r.code, []byte(r.errorBody()+"\n"))
	case r.code == http.StatusNotModified:
	case r.Peer != "", r.Bytes != nil && len(r.query.Fields) == 0:
		r.sendValue(w)
	default:
		r.serveValue(w, req)
	}
}

// sendValue sends a peer's value, or a whole value unconditionally.
func (r *request) sendValue(w *writer) {
	h := w.Header()
	if len(r.ContentType) == 0 {
		h["Content-Type"] = nil // keep net/http from guessing a type
	}
	h.Set("Content-Length", strconv.FormatInt(r.Length, 10))
	switch {
	case r.method == http.MethodHead:
	case r.Bytes != nil:
		w.Write(r.Bytes) //nolint:errcheck // w records the error
	default:
		_, err := io.Copy(w, io.LimitReader(r.Body(), r.Length))
		w.broken = w.broken || err != nil
	}
}

// unmet are the texts for what a value does not meet of a request, by status.
var unmet = map[int]string{
	http.StatusPreconditionFailed:           "the value is not the one of the request's condition",
	http.StatusRequestedRangeNotSatisfiable: "invalid range: failed to overlap",
}

// serveValue sends a local value, subject to the conditions and the range of the request. If it turns
// out to be unreadable before anything was sent, it asks other nodes.
func (r *request) serveValue(w *writer, req *http.Request) {
	modified, _ := http.ParseTime(string(r.LastModified)) // zero if unknown
	h := req.Header
	restrict(h, req.Method, r.Length)
	body := r.Body()
	w.replaced = http.StatusRequestedRangeNotSatisfiable
	http.ServeContent(w, req, "", modified, body)
	w.replaced = 0
	r.fields = r.fields[:0]
	switch {
	case body.Outcome != reads.Found && body.Outcome != reads.TooSlow && !r.sent:
		clear(w.Header())
		r.prepare(r.Retry())
		r.respond(w, req)
	case body.Outcome != reads.Found:
		w.broken = true
	case unmet[r.code] != "":
		r.fail(r.code, unmet[r.code])
		r.respond(w, req)
	}
}

// restrict removes conditions that http.ServeContent would evaluate but that are not reliable here.
// Last-Modified is the time of a version and not of a value, and another version may have the same or an earlier time. So
// dates do not count. Ranges are valid only for GET.
func restrict(h http.Header, method string, length int64) {
	h.Del("If-Modified-Since")
	h.Del("If-Unmodified-Since")
	ranges, tags := h["Range"], h["If-Range"]
	if method != http.MethodGet || len(ranges) != 1 || length == 0 || !oneRange.MatchString(ranges[0]) ||
		len(tags) > 1 || len(tags) == 1 && !strings.HasPrefix(tags[0], `"`) {
		h.Del("Range")
	}
}

// oneRange is a Range field with one range of bytes. http.ServeContent would answer malformed fields and other units with 416, and the last
// 0 bytes with a range that ends before it begins.
var oneRange = regexp.MustCompile(`^bytes=([0-9]{1,18}-[0-9]{0,18}|-0*[1-9][0-9]{0,17})$`)

// serveExplanation answers with an explanation of how the key is looked up, and ignores conditions and
// ranges. It is counted as a status page, because its duration is not typical for keys.
func (r *request) serveExplanation(w *writer) (prepared bool) {
	r.Timed = true
	o := r.read(nil)
	e := r.Explain(o)
	if e == nil { // no version was acquired
		r.prepare(o)
		return true
	}
	r.CountAs(r.s.opts.Metrics.Status)
	w.Header().Set(wire.Version, e.Version)
	e.Status = http.StatusOK
	if o != reads.Found {
		e.Status, e.Error = failures[o].code, failures[o].text
	}
	sendJSON(w, http.StatusOK, e)
	return false
}

// writer is the http.ResponseWriter of a request. It sends the status together with the first byte of the
// body, so that the answer can change until then.
type writer struct {
	http.ResponseWriter
	r      *request
	broken bool // the body was not sent completely

	taken    int64 // bytes of the body that Write took, before they were encoded
	replaced int   // if this is the status, what is written is discarded, because it will be replaced; 0 for none

	coding    string  // the client's preference among the codings, see encode.go; "" for none
	encoded   bool    // the answer has the coding
	encoder   encoder // nil if nothing is encoded
	length    int64   // of the body before it is encoded; -1 if unknown
	unflushed int     // bytes of the body since the last flush
	flushed   time.Time
}

func (w *writer) WriteHeader(code int) { w.r.code = code }

func (w *writer) Write(p []byte) (written int, err error) {
	if w.replaced != 0 && w.r.code == w.replaced {
		return len(p), nil
	}
	w.begin()
	switch {
	case w.encoder != nil:
		written, err = w.writeEncoded(p)
	case w.encoded: // HEAD
		written = len(p)
	default:
		written, err = w.send(p)
	}
	w.taken += int64(written)
	return written, err
}

func (w *writer) send(p []byte) (written int, err error) {
	written, err = w.ResponseWriter.Write(p)
	if w.r.method != http.MethodHead {
		w.r.bytes += int64(written)
	}
	w.broken = w.broken || err != nil
	return written, err
}

// begin sends the status, unless it was sent.
func (w *writer) begin() {
	if !w.r.sent {
		w.r.sent = true
		w.encode()
		w.addShared()
		if w.r.code != http.StatusOK { // Write sends 200 without copying the header
			w.ResponseWriter.WriteHeader(w.r.code)
		}
	}
}

// addShared adds the fields that all answers have.
func (w *writer) addShared() {
	r, h := w.r, w.Header()
	if set := h.Get("Cache-Control"); set != "" {
		r.cache = []byte(set)
	}
	r.fields = r.fields[:0]
	r.addShared()
	for _, f := range r.fields {
		h.Set(f.name, string(f.value))
	}
}

// leave ends the request. An incomplete answer closes its connection. A panic is a bug and causes status 500.
func (w *writer) leave() {
	r := w.r
	defer r.end()
	if p := recover(); p != nil {
		r.logPanic(p)
		w.broken = r.sent
		if !r.sent {
			w.Header().Set("Connection", "close")
			w.replaced, r.fields = 0, r.fields[:0]
			r.fail(http.StatusInternalServerError, "internal error")
			r.respond(w, nil)
		}
	}
	w.begin()
	w.endEncoding()
	if w.broken {
		r.brokeOff(r.Body().Outcome)
	}
	r.finish()
	if w.broken {
		panic(http.ErrAbortHandler)
	}
}
