package server

import (
	"crypto/subtle"
	"net/http"
	"time"
)

var keyAuthorization = []byte("Authorization")

// keySecret is the header in which nodes of a cluster show its secret.
const keySecret = "X-Sequins-Cluster"

// isPeer reports whether a request that shows this secret is of another node.
func (s *Server) isPeer(secret []byte) bool {
	return subtle.ConstantTimeCompare(secret, s.peerSecret) == 1
}

// allowedPeer is allowed for a request with ?proxy= where there is a secret. Nodes
// have checked the tokens of their clients, and show none.
func (r *request) allowedPeer() bool {
	if r.s.isPeer(r.ctx.Request.Header.Peek(keySecret)) {
		return true
	}
	r.countRefused()
	r.fail(http.StatusForbidden, "?proxy= is for the nodes of this cluster, which show its secret")
	return false
}

// What a request has to show, for those who are told no.
const (
	challenge  = `Bearer realm="sequins"`
	needsToken = "a token is needed: send the header Authorization: Bearer <token>"
	noToken    = "this token is not known to this node: ask those who run it for one"
)

// allowed says whether a request may have what it asks for. If not, it has been
// answered, in the same way whether there is such a db or not. Probes may be asked
// by everybody; see sees.
func (r *request) allowed() bool {
	if r.s.opts.PeerSecret != "" && !r.target.route.isProbe() && fromPeer(r.target.query) {
		return r.allowedPeer()
	}
	tokens := r.s.opts.Tokens
	if tokens == nil {
		return true
	}
	var presented bool
	r.grant, presented = tokens.Find(r.ctx.Request.Header.PeekCanonical(keyAuthorization))
	t := &r.target
	switch {
	case t.route.isProbe():
		return true
	case r.grant == nil:
		r.unauthorised(presented)
	case t.route == routeKey && !r.grant.Reads(t.db):
		r.forbidden("the token " + r.grant.Name + " may not read this database")
	case (t.route != routeKey || explains(t.query)) && !r.grant.Pages:
		r.forbidden("the token " + r.grant.Name + " may not see status pages and explanations")
	default:
		return true
	}
	return false
}

// granted reports whether a plain request may have what it asks for, with this
// token and secret or none. Why not is allowed's to say.
func (r *request) granted(p *plain, proxied bool) bool {
	if proxied && r.s.opts.PeerSecret != "" {
		return r.s.isPeer(p.secret)
	}
	tokens, authorization := r.s.opts.Tokens, p.authorization
	if tokens == nil {
		return true
	}
	r.grant, _ = tokens.Find(authorization)
	return r.grant != nil && r.grant.Reads(r.target.db)
}

// sees says whether whoever asks may see what is on the pages.
func (r *request) sees() bool {
	return r.s.opts.Tokens == nil || r.grant != nil && r.grant.Pages
}

// unauthorised answers where there is no token, or none that is known. Somebody at a
// browser, who cannot send one, gets the page without anything on it, which asks.
func (r *request) unauthorised(presented bool) {
	r.countRefused()
	reason := challenge
	if presented {
		reason += `, error="invalid_token"`
	}
	switch {
	case r.target.route != routeKey && !presented:
		r.page(r.s.askForToken(string(r.target.db)))
	case presented:
		r.fail(http.StatusUnauthorized, noToken)
	default:
		r.fail(http.StatusUnauthorized, needsToken)
	}
	r.ctx.Response.Header.Set("WWW-Authenticate", reason)
}

// forbidden answers where a token is known and not enough.
func (r *request) forbidden(message string) {
	r.countRefused()
	r.ctx.Response.Header.Set("WWW-Authenticate", challenge+`, error="insufficient_scope"`)
	r.fail(http.StatusForbidden, message)
}

func (r *request) countRefused() {
	r.counts = r.s.opts.Metrics.Status
	if r.target.route == routeKey {
		asked, _ := proxyOf(r.target.query) // of an escape that is bad nothing is said to strangers
		r.counts = r.s.opts.Metrics.Unknown.Of(len(asked) > 0)
	}
}

// askForToken is the page of a node, or of a db whether there is one or not, for
// those who have shown no token.
func (s *Server) askForToken(only string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !wantsHTML(r.Header["Accept"]) {
			text(w, http.StatusUnauthorized, needsToken)
			return
		}
		s.render(w, http.StatusUnauthorized, page{Level: levelWarn, Headline: "This node wants a token.", Only: only, Shut: true, Now: clock(time.Now())})
	}
}
