package server

import "net/http"

// Cross-origin requests (CORS, https://fetch.spec.whatwg.org). A browser lets a page of another origin read an answer only if
// it names that origin, or all. Tokens are in a header that the page sets itself, which is announced by a preflight; cookies and
// other credentials of the browser are not used, so Access-Control-Allow-Credentials is never sent.
//
// If all origins are allowed, all answers say so, and none depends on the origin. Otherwise an answer names the origin of its
// request if that is allowed, and varies by it in any case, because caches store answers to other origins too.

const (
	// exposed are the fields that pages may read, besides those that they may always.
	exposed = "ETag, Accept-Ranges, Content-Range, Retry-After, WWW-Authenticate, X-Sequins-Version, X-Sequins-Proxied-To, X-Sequins-Shard-ID"
	// allowedFields are the fields that pages may send, besides those that they may always.
	allowedFields = "Authorization, Content-Type, If-Match, If-None-Match, If-Range, Range, X-Sequins-At-Least, X-Sequins-Version, Traceparent, Tracestate"
	// preflightAge is how long a browser may remember a preflight, in seconds. Browsers have limits of their own, of two
	// hours and more. Answers are checked against the origins in any case.
	preflightAge = "7200"
)

var (
	anyOrigin    = []byte("*")
	exposedValue = []byte(exposed)
)

// addOrigin adds the fields that let a page read the answer.
func (r *request) addOrigin(d *delivery) {
	switch {
	case d.all:
		r.add("Access-Control-Allow-Origin", anyOrigin)
	case d.origins[string(r.asked.origin)]:
		r.vary |= varyOrigin
		r.add("Access-Control-Allow-Origin", r.asked.origin)
	default:
		r.vary |= varyOrigin
		return
	}
	r.add("Access-Control-Expose-Headers", exposedValue)
}

// isPreflight reports whether a browser asks whether a page of an allowed origin may send a request.
func (r *request) isPreflight(req *http.Request) bool {
	d := r.delivery
	return req.Method == http.MethodOptions && len(r.asked.origin) > 0 && req.Header.Get("Access-Control-Request-Method") != "" &&
		(d.all || d.origins[string(r.asked.origin)])
}

// answerPreflight tells what pages may send. It says nothing about the target, and needs no token.
func (r *request) answerPreflight(w *writer) {
	r.CountAs(r.s.opts.Metrics.Status)
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", r.methods())
	h.Set("Access-Control-Allow-Headers", allowedFields)
	h.Set("Access-Control-Max-Age", preflightAge)
	w.WriteHeader(http.StatusNoContent)
}

func (r *request) methods() string {
	if r.target.route == routeDB && r.target.path != nil {
		return "GET, HEAD, POST"
	}
	return "GET, HEAD"
}
