package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"sequins/blocks"
	"sequins/internal/http1"
	"sequins/proxy"
	"sequins/version"
)

// answerPlain answers the request whose header is the next to be given out, if it is
// plain. Otherwise it is as if nobody had looked at it.
func (c *conn) answerPlain() bool {
	if c.err != nil || c.crowded || c.end-c.r > readAhead {
		return false
	}
	p, ok := parsePlain(c.buf[c.r:c.end])
	if !ok {
		return false
	}
	c.state.Store(connAnswering)
	r := c.server.requests.Get().(*request)
	ok = r.answerPlain(c, &p)
	if ok && r.closing && c.err == nil {
		c.err = io.EOF // the client has been told
	}
	r.letGo()
	if !c.state.CompareAndSwap(connAnswering, connIdle) {
		if !ok {
			c.refuseLast()
		}
		c.err = errors.Join(net.ErrClosed, c.close())
		ok = true
	}
	switch {
	case ok && c.err != nil: // it was not sent whole: nothing can follow
		c.r, c.end, c.w = 0, 0, 0
	case ok:
		c.r = c.end
	}
	return ok
}

// answerPlain answers a plain request on its connection, if it can.
func (r *request) answerPlain(c *conn, p *plain) (done bool) {
	r.begin(c, time.Now())
	defer r.leavePlain(&done)
	if r.s.holding.Load() {
		return false
	}
	r.closing = r.s.draining.Load()
	h, proxied := r.findPlain(p)
	if h == nil || h.value == nil {
		return false
	}
	partition := r.handle.Partition(r.target.key)
	v, ok, err := r.lookUp(partition)
	switch {
	case errors.Is(err, version.ErrNotLocal):
		return r.askPlain(p, h, r.peers(partition, proxied))
	case err != nil || v.Large():
		return false
	case ok:
		r.renderValue(h, v)
	default:
		r.renderFailure(h, http.StatusNotFound, noSuchKey, "")
	}
	r.tracePlain(p)
	r.send()
	return true
}

// leavePlain is the end of answerPlain. A request that has not been answered is not counted,
// as it will come again; so will a panic, in Server.handle.
func (r *request) leavePlain(done *bool) {
	if *done {
		return
	}
	r.s.opts.Metrics.End(r.stripe)
	if p := recover(); p != nil {
		r.s.trouble("panic while answering a request", "target", r.escaped(), "panic", p, "stack", string(debug.Stack()))
	}
}

// tracePlain begins the span of a plain request, if it is one of those that are traced.
func (r *request) tracePlain(p *plain) {
	if r.s.opts.Tracer != nil {
		r.traceFrom(p.traceparent, p.tracestate)
	}
}

// findPlain finds what the request is to be answered from, nil if it is not here, and
// whether a peer asks.
func (r *request) findPlain(p *plain) (h *heads, proxied bool) {
	s := r.s
	var err error
	if r.target, r.buf, err = parseTarget(p.uri, r.buf); err != nil || r.target.route != routeKey {
		return nil, false
	}
	asked, ok := bytes.CutPrefix(r.target.query, []byte("proxy="))
	if len(r.target.query) > 0 && !ok || bytes.ContainsAny(asked, "&%") || !r.granted(p, len(asked) > 0) {
		return nil, false
	}
	set := s.catalog.Set(r.target.db)
	if set == nil {
		return nil, false
	}
	r.acquire(set, asked, p.plan)
	if r.handle == nil || r.handle.Partitions() == 0 {
		return nil, false
	}
	return r.db.head(s, r.handle), len(asked) > 0
}

// askPlain answers with what a peer says, if there are any.
func (r *request) askPlain(p *plain, h *heads, peers []string) bool {
	if len(peers) == 0 {
		return false
	}
	r.tracePlain(p)
	a, err := r.ask(h, peers, false, r.plainFields(p))
	if err != nil || a.Status != http.StatusOK {
		r.renderPeersFailure(h, a, err)
		r.send()
		return true
	}
	r.renderPeers(h, a)
	if int64(len(a.Value)) == a.Length && a.Length <= copied {
		r.finishPlain(r.rendered, a.Value)
		r.send()
	} else {
		r.relay(a.Length)
	}
	return true
}

// plainFields are what a peer is told: see forwarded.
func (r *request) plainFields(p *plain) []proxy.Field {
	to := r.s.credential(r.query.Fields[:0])
	add := func(name string, value []byte) {
		if len(value) > 0 {
			to = append(to, proxy.Field{Name: name, Value: value})
		}
	}
	if r.trace == nil {
		add(keyTraceparent, p.traceparent)
		add(keyTracestate, p.tracestate)
	}
	return to
}

// send counts the request and sends what is rendered.
func (r *request) send() {
	now := r.start.Add(r.count())
	if r.value == nil { // it has been copied: the version and the peer need not wait for the client
		r.release()
	}
	r.conn.send(r.rendered, r.value, now)
}

// relay sends what is rendered, and behind it a value of n bytes as it comes from a peer.
func (r *request) relay(n int64) {
	buffer := relayBuffers.Get().(*[]byte)
	defer relayBuffers.Put(buffer)
	b := &peerBody{r: r}
	for used := copy(*buffer, r.rendered); ; used = 0 {
		chunk := (*buffer)[used:]
		m, err := io.ReadFull(b, chunk[:min(int64(len(chunk)), n-r.bytes)])
		if r.conn.err = err; err == nil {
			if r.bytes == n { // the peer has said all: its connection is free before the client can ask again
				r.answered.Close() //nolint:errcheck // it has been read
				r.answered = nil
			}
			_, r.conn.err = r.conn.Write((*buffer)[:used+m])
		}
		if r.conn.err != nil || r.bytes == n {
			break
		}
	}
	b.ended(r.conn.err)
	r.count()
}

var relayBuffers = sync.Pool{New: func() any { b := make([]byte, responseBuffer); return &b }}

// startPlain begins an answer, up to the date.
func (r *request) startPlain(code int) []byte {
	b := append(r.rendered[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(append(b, ' '), fasthttp.StatusMessage(code)...)
	r.code = code
	b = r.s.date.appendTo(append(b, "\r\nDate: "...), r.start)
	if r.closing {
		b = append(b, "\r\nConnection: close"...)
	}
	return b
}

// lastAnswer is for a request that fasthttp would have to answer and that came
// when fasthttp had closed the connection already.
const lastAnswer = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n" +
	"Content-Type: " + plainText + "\r\nContent-Length: 27\r\n\r\nthis node is shutting down\n"

func (c *conn) refuseLast() {
	now := time.Now()
	c.server.opts.Metrics.Invalid.Done(0, http.StatusServiceUnavailable, 0, 0)
	c.send([]byte(lastAnswer), nil, now)
}

// renderValue puts together the answer with a value.
func (r *request) renderValue(h *heads, v blocks.Value) {
	b := append(r.startPlain(http.StatusOK), h.value...)
	b = strconv.AppendInt(b, v.Len(), 10)
	b = append(b, h.tag...)
	b = append(b, r.tag(v.Hash())...)
	r.finishPlain(append(b, h.rest...), v.Bytes())
}

// renderPeers puts together what stands before a peer's value.
func (r *request) renderPeers(h *heads, a *proxy.Answer) {
	b := appendField(r.startPlain(http.StatusOK), keyContentType, a.Header.ContentType)
	b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), a.Length, 10)
	b = appendField(b, keyVersion, h.versionValue)
	b = appendField(b, keyProxiedTo, a.Peer)
	b = appendField(b, keyETag, a.Header.ETag)
	b = appendField(b, keyLastModified, a.Header.LastModified)
	b = appendField(b, keyRanges, a.Header.AcceptRanges)
	r.rendered = append(b, "\r\n\r\n"...)
}

// finishPlain adds the value to an answer, or lays it beside it.
func (r *request) finishPlain(b, value []byte) {
	r.rendered, r.bytes = b, int64(len(value))
	if len(value) <= copied {
		r.rendered = append(b, value...)
	} else {
		r.value = value
	}
}

// renderPeersFailure puts together the answer where peers have no value: it is not there,
// or they have failed, or say what only conditions and ranges could have led to.
func (r *request) renderPeersFailure(h *heads, a *proxy.Answer, err error) {
	code, message := unanswered(false, false, err)
	peer := ""
	if err == nil {
		peer = a.Peer
		if a.Status == http.StatusNotFound {
			code, message = a.Status, noSuchKey
		}
	}
	r.renderFailure(h, code, message, peer)
}

// renderFailure puts together the answer for a key that has no value, and where it is a
// peer that says so, with its name.
func (r *request) renderFailure(h *heads, code int, message, peer string) {
	b := appendField(r.startPlain(code), keyContentType, plainText)
	b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), int64(len(message)+1), 10)
	b = appendField(b, keyVersion, h.versionValue)
	b = appendField(b, keyProxiedTo, peer)
	b = append(append(append(b, "\r\n\r\n"...), message...), '\n')
	r.rendered, r.bytes = b, int64(len(message)+1)
}

// appendField appends a line of a header, with the line end before it, unless it is empty
// or could not be a line.
func appendField[T string | []byte](b, name []byte, value T) []byte {
	if len(value) == 0 || http1.HasControl(value) {
		return b
	}
	b = append(append(b, "\r\n"...), name...)
	return append(append(b, ": "...), value...)
}
