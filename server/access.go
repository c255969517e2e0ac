package server

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"time"
)

// isPeer reports whether a request that shows this secret is of another node.
func (s *Server) isPeer(secret []byte) bool {
	return subtle.ConstantTimeCompare(secret, s.peerSecret) == 1
}

// allowedPeer is allowed for a request with ?proxy= where there is a secret. Nodes
// have checked the tokens of their clients, and show none.
func (r *request) allowedPeer() bool {
	if r.s.isPeer(r.asked.secret) {
		return true
	}
	r.countRefused()
	r.fail(http.StatusForbidden, "?proxy= is for the nodes of this cluster, which show its secret")
	return false
}

// What a refused request is answered with.
const (
	challenge  = `Bearer realm="sequins"`
	needsToken = "a token is needed: send the header Authorization: Bearer <token>"
	noToken    = "this token is not known to this node: ask those who run it for one"
)

// allowed reports whether a request may have what it asks for. If not, the refusal
// is prepared, the same whether there is such a db or not. Probes may be asked
// by everybody, but not about one db; see canViewPages.
func (r *request) allowed() bool {
	if r.s.opts.PeerSecret != "" && !r.target.route.isProbe() && fromPeer(r.target.query) {
		return r.allowedPeer()
	}
	tokens := r.s.opts.Tokens
	if tokens == nil {
		return true
	}
	var presented bool
	r.grant, presented = tokens.Find(r.asked.authorization)
	t, db := &r.target, readyDB(&r.target)
	switch {
	case t.route.isProbe() && len(db) == 0:
		return true
	case r.grant == nil:
		r.unauthorised(presented)
	case t.route.isProbe() && !r.grant.Pages && !r.grant.Reads(db):
		r.forbidden("the token " + r.grant.Name + " may not read this database")
	case t.route.isProbe():
		return true
	case t.route == routeKey && !r.grant.Reads(t.db):
		r.forbidden("the token " + r.grant.Name + " may not read this database")
	case (t.route != routeKey || explains(t.query)) && !r.grant.Pages:
		r.forbidden("the token " + r.grant.Name + " may not see status pages and explanations")
	default:
		return true
	}
	return false
}

// readyDB is the db that GET /readyz?db=NAME asks about, empty for another request.
func readyDB(t *target) []byte {
	if t.route != routeReady {
		return nil
	}
	values, _ := url.ParseQuery(string(t.query)) // ready refuses a query that cannot be read
	return []byte(values.Get("db"))
}

// canViewPages reports whether the client may see what is on the pages.
func (r *request) canViewPages() bool {
	return r.s.opts.Tokens == nil || r.grant != nil && r.grant.Pages
}

// unauthorised refuses a request with no token, or with one that is not known.
func (r *request) unauthorised(presented bool) {
	r.countRefused()
	reason, message := challenge, needsToken
	if presented {
		reason, message = reason+`, error="invalid_token"`, noToken
	}
	r.add("WWW-Authenticate", []byte(reason))
	r.fail(http.StatusUnauthorized, message)
}

// forbidden refuses a request whose token is known and does not suffice.
func (r *request) forbidden(message string) {
	r.countRefused()
	r.add("WWW-Authenticate", []byte(challenge+`, error="insufficient_scope"`))
	r.fail(http.StatusForbidden, message)
}

func (r *request) countRefused() {
	counts := r.s.opts.Metrics.Status
	if r.target.route == routeKey {
		asked, _ := proxyOf(r.target.query) // strangers are not told of a bad escape
		counts = r.s.opts.Metrics.Unknown.Of(len(asked) > 0)
	}
	r.CountAs(counts)
}

// askForToken is the page of a node, or of a db whether there is one or not, for a
// browser that has shown no token: there is nothing on it, and it asks for one.
func (s *Server) askForToken(w http.ResponseWriter, only string) {
	s.render(w, http.StatusUnauthorized, page{Level: levelWarn, Headline: "This node wants a token.", Only: only, Shut: true, Now: clock(time.Now())})
}
