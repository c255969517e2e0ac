package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sequins/proxy"
)

var (
	keyProxiedTo   = []byte("X-Sequins-Proxied-To")
	keyContentType = []byte("Content-Type")
)

// keyPlan is the header of a request to a peer that names the plan by which the version is
// loaded here. A peer that has loaded it by another one does not have it. A request without it
// comes from an older release.
const keyPlan = "X-Sequins-Plan"

// What goes with a request to a peer of that of the client: the trace that it is
// part of, and where the value is wanted, its conditions and range. The trace comes
// last. The client's token stays here: the peer's address is from ZooKeeper.
var (
	forwarded      = []string{keyTraceparent, keyTracestate}
	forwardedToGet = append([]string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"}, forwarded...)
)

// fetch answers with what a peer says. An error means that nothing has been
// answered yet.
func (r *request) fetch(h *heads, peers []string) error {
	answer, err := r.ask(h, peers, r.ctx.IsHead(), r.fields(forwardedToGet))
	if err != nil {
		return err
	}
	r.pass(h, answer)
	return nil
}

// ask asks peers for what is asked for, in this very version. The answer is closed at the
// end of the request.
func (r *request) ask(h *heads, peers []string, head bool, fields []proxy.Field) (*proxy.Answer, error) {
	if len(h.plan) > 0 {
		fields = append(fields, proxy.Field{Name: keyPlan, Value: h.plan})
	}
	r.query = proxy.Query{Peers: peers, Head: head, Path: r.target.path, Version: h.version, Fields: fields, Trace: r.trace}
	answer, err := r.s.opts.Proxy.Fetch(r.s.ending, &r.query)
	if r.logged {
		r.asking = time.Since(r.start) - r.lookup
	}
	switch {
	case err == nil:
		r.answered = answer.Body
	case !errors.Is(err, context.Canceled):
		r.s.trouble("asking peers", "target", r.escaped(), "peers", peers, "error", err)
	}
	return answer, err
}

// credential adds what shows a peer that a node of its cluster asks.
func (s *Server) credential(to []proxy.Field) []proxy.Field {
	if s.opts.PeerSecret != "" {
		to = append(to, proxy.Field{Name: keySecret, Value: s.peerSecret})
	}
	return to
}

// fields finds the headers of these names. Where the request has a span here, what
// the peer is told of the trace comes from that of the attempt.
func (r *request) fields(names []string) []proxy.Field {
	fields := r.s.credential(r.query.Fields[:0])
	if r.trace != nil {
		names = names[:len(names)-2]
	}
	for name, value := range r.ctx.Request.Header.All() {
		for _, f := range names {
			if string(name) == f {
				fields = append(fields, proxy.Field{Name: f, Value: value})
			}
		}
	}
	return fields
}

// pass sends a peer's answer on.
func (r *request) pass(h *heads, a *proxy.Answer) {
	r.code = a.Status
	r.ctx.SetStatusCode(r.code)
	header := &r.ctx.Response.Header
	header.SetCanonical(keyVersion, h.versionValue)
	header.SetBytesK(keyProxiedTo, a.Peer)
	set := func(key, value []byte) {
		if len(value) > 0 {
			header.SetCanonical(key, value)
		}
	}
	set(keyETag, a.Header.ETag)
	set(keyLastModified, a.Header.LastModified)
	set(keyRanges, a.Header.AcceptRanges)
	set(keyContentRange, a.Header.ContentRange)
	set(keyContentType, a.Header.ContentType)
	switch {
	case r.code == http.StatusNotFound:
		r.fail(r.code, noSuchKey)
	case r.code == http.StatusPreconditionFailed, r.code == http.StatusRequestedRangeNotSatisfiable:
		r.fail(r.code, "the peer's value does not meet the request's condition or range")
	case r.code == http.StatusNotModified:
	case r.ctx.IsHead():
		r.ctx.Response.SkipBody = true
		header.SetContentLength(int(a.Length))
	case a.Value != nil:
		r.bytes = a.Length
		r.body(a.Value)
	default:
		r.stream(&peerBody{r: r}, int(a.Length))
	}
}
