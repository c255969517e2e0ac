package server

import (
	"crypto/subtle"
	"net/http"
)

// fromNode reports whether another node of the cluster sent the request. It decides for every route and both front ends: nodes, and nobody else,
// name a version in the parameter proxy, and show the secret of the cluster if there is one.
func (r *request) fromNode() bool {
	return len(r.target.proxy) > 0 && (len(r.s.peerSecret) == 0 || subtle.ConstantTimeCompare(r.asked.secret, r.s.peerSecret) == 1)
}

// Texts of refusals.
const (
	challenge  = `Bearer realm="sequins"`
	needsToken = "a token is needed: send the header Authorization: Bearer <token>"
	noToken    = "this token is not known to this node: ask those who run it for one"
)

// allowed reports whether the client may have what it requests. If not, it prepares the refusal, which does
// not depend on whether the db exists. Probes are allowed for everybody, unless they name a db; see
// canViewPages.
func (r *request) allowed() bool {
	switch {
	case len(r.target.proxy) > 0 && !r.internal:
		r.countRefused()
		r.fail(http.StatusForbidden, "?proxy= is for the nodes of this cluster, which show its secret")
		return false
	case r.internal && len(r.s.peerSecret) > 0: // the other node has checked its client's token
		return true
	}
	tokens := r.s.opts.Tokens
	if tokens == nil {
		return true
	}
	var presented bool
	r.grant, presented = tokens.Find(r.asked.authorization)
	t := &r.target
	var db []byte // of GET /readyz?db=NAME
	if t.route == routeReady {
		db, _ = nameParameter(t.query, "db") // readiness refuses a malformed one
	}
	switch {
	case t.route.isProbe() && len(db) == 0, t.route == routeRunbook: // links of alerts have no token
		return true
	case r.grant == nil:
		r.unauthorised(presented)
	case t.route.isProbe() && !r.grant.Pages && !r.grant.Reads(db), r.isRead() && !r.grant.Reads(t.db):
		r.forbidden("the token " + r.grant.Name + " may not read this database")
	case t.route.isProbe(), t.route == routeAPI:
		return true
	case (!r.isRead() || r.op == opExplain) && !r.grant.Pages:
		r.forbidden("the token " + r.grant.Name + " may not see status pages and explanations")
	default:
		return true
	}
	return false
}

// isRead reports whether the request is for values of a db, not for its status.
func (r *request) isRead() bool { return r.op != opPage }

// canViewPages reports whether the client may see status pages.
func (r *request) canViewPages() bool {
	return r.s.opts.Tokens == nil || r.grant != nil && r.grant.Pages
}

// unauthorised refuses a request without a token or with an unknown one.
func (r *request) unauthorised(presented bool) {
	r.countRefused()
	reason, message := challenge, needsToken
	if presented {
		reason, message = reason+`, error="invalid_token"`, noToken
	}
	r.add("WWW-Authenticate", []byte(reason))
	r.failPage(http.StatusUnauthorized, message)
}

// forbidden refuses a request whose token is known but insufficient.
func (r *request) forbidden(message string) {
	r.countRefused()
	r.add("WWW-Authenticate", []byte(challenge+`, error="insufficient_scope"`))
	r.failPage(http.StatusForbidden, message)
}

func (r *request) countRefused() {
	counts := r.s.opts.Metrics.Status
	if r.isRead() {
		counts = r.s.opts.Metrics.Unknown.Of(len(r.target.proxy) > 0)
	}
	r.CountAs(counts)
}
