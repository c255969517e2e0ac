package server

import (
	"net/http"
	"time"

	"sequins/internal/wire"
	"sequins/observe/tracing"
	"sequins/proxy"
	"sequins/reads"
	"sequins/server/auth"
)

// request is the pooled state of one request of either front end; its slices keep their capacity. The answer
// is prepared in it, and rendered by the fast path or by net/http.
type request struct {
	reads.Read
	s       *Server
	conn    *conn // nil only in tests
	method  string
	asked   asked
	target  target
	op      operation
	unknown []byte // the name of the parameter of opUnknown
	query   reads.Query
	grant   *auth.Grant // the rights of the token; nil if there is no known token
	closing bool        // close the connection after the answer

	delivery *delivery // of the server when the request began
	internal bool      // the request is from another node

	code   int
	fields []field
	text   string // what is wrong, in one line without its end; "" if the body is a value
	json   bool   // the error is sent in JSON
	cache  []byte // the Cache-Control field; nil for none
	vary   uint8  // see varyFields
	bytes  int64  // sent bytes of the body
	sent   bool   // part of the answer was sent

	buf  []byte // holds the decoded parts of the target
	peer []byte // copy of Result.Peer
	out  []byte // the rendered answer of the fast path
}

type field struct {
	name  string
	value []byte
}

var retryAfter = []byte("1")

func (r *request) begin(c *conn, method string) {
	r.conn, r.method, r.delivery = c, method, r.s.delivery.Load()
	r.Begin(time.Now())
	r.Timed = r.s.log != nil && r.s.log.sampled()
	r.closing = r.s.open.Draining() || c != nil && c.crowded
}

// arrived stores what was asked, and decides whether another node asks.
func (r *request) arrived(a asked) {
	r.asked = a
	r.internal = r.fromNode()
	r.Trace(a.traceparent, a.tracestate, r.internal)
}

// mayRead reports whether the client may read the db, and the node knows what it serves. Otherwise it prepares the refusal.
func (r *request) mayRead() bool {
	if !r.allowed() {
		return false
	}
	if r.s.reads.Holding() {
		r.add("Retry-After", retryAfter)
		r.fail(http.StatusServiceUnavailable, "this node is starting")
		return false
	}
	return true
}

func (r *request) newQuery() reads.Query {
	return reads.Query{DB: r.target.db, Version: r.target.proxy, Content: r.asked.content, AtLeast: r.asked.atLeast, Exact: r.asked.exact}
}

// read looks the key up. conditions are the conditional fields of the request, which are forwarded to peers.
func (r *request) read(conditions []proxy.Field) reads.Outcome {
	r.query = r.newQuery()
	r.query.Key, r.query.Fields = r.target.key, conditions
	r.query.Head = r.method == http.MethodHead || r.op == opExplain
	return r.Do(&r.query)
}

// failures are the answers for outcomes without a value.
var failures = [...]struct {
	code int
	text string
}{
	reads.Absent:      {http.StatusNotFound, "no such key"},
	reads.NoDB:        {http.StatusNotFound, "no such db"},
	reads.NotHere:     {http.StatusNotImplemented, "the db or the version is not here"},
	reads.NotLocal:    {http.StatusNotImplemented, "this key's partition is not here"},
	reads.Unready:     {http.StatusServiceUnavailable, "no version of this db can be read on this node yet"},
	reads.Behind:      {http.StatusServiceUnavailable, "this node does not serve the version of X-Sequins-At-Least, or of the cursor, yet"},
	reads.TooLarge:    {http.StatusRequestEntityTooLarge, "the values are too large"},
	reads.Busy:        {http.StatusServiceUnavailable, "the batches of all requests need too much memory: try again"},
	reads.Gone:        {http.StatusPreconditionFailed, "the version of X-Sequins-Version cannot be read on this node"},
	reads.Expired:     {http.StatusGone, "the version of the cursor cannot be read any more: begin again without it"},
	reads.BadCursor:   {http.StatusBadRequest, "after is not a cursor of this database"},
	reads.Unreadable:  {http.StatusInternalServerError, "the block of this key cannot be read"},
	reads.Unreachable: {http.StatusBadGateway, "no node that can be reached has this key's partition"},
	reads.Late:        {http.StatusGatewayTimeout, "the nodes that have this key's partition took too long"},
	reads.GivenUp:     {statusClientGone, "the request was given up"},
	reads.TooSlow:     {statusClientGone, ""},
}

// statusClientGone is nginx's code for a client that closed the connection. It appears in the log, in the
// metrics, and in answers to requests that the shutdown aborted.
const statusClientGone = 499

// prepare prepares the answer for an outcome, except the value.
func (r *request) prepare(o reads.Outcome) {
	r.fields = r.fields[:0]
	r.peer = append(r.peer[:0], r.Peer...)
	r.add(wire.Version, r.Version)
	r.add(wire.ProxiedTo, r.peer)
	if len(r.query.Version) > 0 {
		r.add(wire.Content, r.Content)
	}
	switch o {
	case reads.Found:
		r.code, r.text = http.StatusOK, ""
		if r.Peer != "" {
			r.code = r.Status
		}
		r.add("Content-Type", r.ContentType)
		r.addValidators()
		r.addCaching()
	case reads.Conditional:
		r.addValidators()
		r.addCaching()
		if r.code = r.Status; r.code != http.StatusNotModified {
			r.fail(r.code, unmet[r.code])
		}
	case reads.Unready, reads.Behind, reads.Busy:
		r.add("Retry-After", retryAfter)
		fallthrough
	default:
		r.fail(failures[o].code, failures[o].text)
	}
}

// addValidators adds the validators and ranges of the value to the header.
func (r *request) addValidators() {
	r.add("ETag", r.ETag)
	r.add("Last-Modified", r.LastModified)
	r.add("Accept-Ranges", r.AcceptRanges)
	r.add("Content-Range", r.ContentRange)
}

// add adds a header field, unless it is empty.
func (r *request) add(name string, value []byte) {
	if len(value) > 0 {
		r.fields = append(r.fields, field{name, value})
	}
}

// brokeOff sets the status of a request whose answer was not sent completely.
func (r *request) brokeOff(o reads.Outcome) {
	r.code = statusClientGone
	if o != reads.Found {
		r.code = failures[o].code
	}
}

func (r *request) finish() time.Duration {
	a := tracing.Answer{Method: r.method, TLS: r.conn != nil && r.conn.IsTLS(), Status: r.code, Bytes: r.bytes, Proxied: r.internal}
	if r.target.path != nil {
		a.Route = routes[r.target.route]
	}
	d := r.Done(a)
	if r.Timed && r.s.log != nil {
		r.s.log.write(r, d)
	}
	return d
}

// end releases everything that the request holds, and returns it to the pool.
func (r *request) end() {
	r.Release()
	r.conn, r.grant, r.asked, r.target, r.op, r.unknown, r.query = nil, nil, asked{}, target{}, opGet, nil, reads.Query{}
	r.code, r.bytes, r.sent, r.text, r.fields = 0, 0, false, "", r.fields[:0]
	r.delivery, r.internal, r.json, r.cache, r.vary = nil, false, false, nil, 0
	if cap(r.buf) > readAhead {
		r.buf = nil
	}
	if cap(r.out) > 4*readAhead {
		r.out = nil
	}
	r.s.requests.Put(r)
}

func (r *request) appendEscaped(b []byte) []byte {
	t := &r.target
	switch {
	case t.path == nil: // malformed
		return append(b, '-')
	case t.route != routeKey:
		return reads.AppendEscaped(b, t.path)
	}
	return reads.AppendTarget(b, t.db, t.key)
}
