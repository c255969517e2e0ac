package reads

import (
	"context"
	"errors"
	"io"
	"time"

	"sequins/blocks"
	"sequins/metrics"
	"sequins/proxy"
	"sequins/tracing"
	"sequins/version"
)

// Query is what is asked for. Its slices have to stay as they are until Release.
type Query struct {
	DB, Key []byte
	// Version is the version that another node asks for by its name, "true" if it asks for the current one.
	// It is empty where a client asks.
	Version []byte
	// Plan names the plan by which that node has loaded the version; empty if it does not say.
	Plan []byte
	// Path is what other nodes are asked for: "/", the db, "/" and the key, escaped.
	Path []byte
	// Head asks for what is known of the value, and not for the value.
	Head bool
	// Fields go with a request to other nodes.
	Fields []proxy.Field
}

// fromPeer reports whether another node asks.
func (q *Query) fromPeer() bool { return len(q.Version) > 0 }

// Outcome is how a read has ended.
type Outcome uint8

// Found and Absent are answers; the others say why there is none.
const (
	Found       Outcome = iota
	Absent              // the version does not have the key
	Conditional         // a peer has answered the conditions among Query.Fields with Result.Status: there is no value
	NoDB                // there is no such db
	NotHere             // a peer asks for a db or a version that this node does not have
	NotLocal            // a peer asks for a partition that this node does not hold
	Unready             // no version of the db can be read yet
	Unreadable          // the block cannot be read or, in a node without others, is lost; no peer could answer
	Unreachable         // no peer could answer
	Late                // the peers took too long
	GivenUp             // the node is shutting down
	TooSlow             // the client reads too slowly from a version that has been replaced; see Body
)

// Result is what Do has found. Its slices are valid until Release.
type Result struct {
	// Version is the name of the version that was asked; empty if none was.
	Version []byte
	// Peer is the address of the node that has answered; empty if this one did.
	Peer string
	// Status is the HTTP status of a peer's answer.
	Status int
	// Length is that of the value in bytes, or of the part that a peer has sent.
	Length int64
	// Bytes is the value; nil where it has to be read with Body.
	Bytes []byte
	// The rest is as it is in the header of a response; empty if it is not known.
	ETag, LastModified, ContentType, AcceptRanges, ContentRange []byte
}

// A Read is the state of one request at a time. It is reused, and keeps its buffers.
type Read struct {
	Result
	// Timed asks for the two durations: from the start until the local block has answered, and from there
	// until a peer has answered or all have failed; 0 if that was not asked.
	Timed          bool
	Lookup, Asking time.Duration

	reader    *Reader
	stripe    uint32 // of the metrics: a pool gives a Read to the core that had it last
	start     time.Time
	counts    *metrics.Requests
	trace     *tracing.Request // nil: it is not traced
	query     *Query
	db        *database       // nil until it is known
	handle    *version.Handle // to be released; nil until the version is known
	labels    *labels
	partition int
	local     bool // this node holds the partition
	body      Body
	answered  io.ReadCloser // a peer's answer, to be closed
	laps      *laps         // nil: nothing is recorded

	traceparent, tracestate []byte // of the request, for peers

	scratch blocks.Scratch
	pages   uint64 // read with scratch, that have been counted
	asked   proxy.Query
	etag    [18]byte
}

// Begin begins a request. It is counted as invalid unless Do or CountAs says something else.
func (r *Read) Begin(start time.Time) {
	r.start, r.partition = start, -1
	r.counts = r.reader.opts.Metrics.Invalid
	r.reader.opts.Metrics.Begin(r.stripe)
}

// Start is when the request began.
func (r *Read) Start() time.Time { return r.start }

// CountAs sets what the request is counted as.
func (r *Read) CountAs(c *metrics.Requests) { r.counts = c }

// Trace starts the span of the request if it is one of those that are traced. The two headers go to the
// nodes that are asked for the key. Only what does not come from another node can begin a trace.
func (r *Read) Trace(traceparent, tracestate []byte, fromPeer bool) {
	r.traceparent, r.tracestate = traceparent, tracestate
	t := r.reader.opts.Tracer
	if t == nil {
		return
	}
	if parent := tracing.ParseParent(traceparent); t.Chosen(parent, !fromPeer) {
		r.trace = t.Request(parent, string(tracestate), r.start)
	}
}

// Do looks the key up. The result is valid until Release.
func (r *Read) Do(q *Query) Outcome {
	r.query = q
	r.counts = r.reader.opts.Metrics.Unknown.Of(q.fromPeer())
	set := r.reader.catalog.Set(q.DB)
	switch {
	case set == nil && q.fromPeer():
		return NotHere
	case set == nil && r.reader.catalog.MayExist(q.DB):
		return Unready
	case set == nil:
		return NoDB
	}
	r.acquire(set)
	switch {
	case r.handle == nil && q.fromPeer():
		return NotHere
	case r.handle == nil:
		return Unready
	}
	r.labels = r.db.labelsOf(r.reader, r.handle)
	r.Version = r.labels.version
	r.lap(lapVersion)
	if r.handle.Partitions() == 0 {
		return Absent
	}
	r.partition = r.handle.Partition(q.Key)
	r.lap(lapPartition)
	return r.lookUp()
}

// acquire takes the version that is asked for. r.handle stays nil if it is not here by the plan of the peer
// that asks.
func (r *Read) acquire(set *version.Set) {
	q := r.query
	r.db = r.reader.database(q.DB)
	r.counts = r.db.counts.Of(q.fromPeer())
	if !q.fromPeer() || string(q.Version) == "true" {
		r.handle = set.Acquire()
	} else {
		r.handle = set.AcquireVersion(string(q.Version), string(q.Plan))
	}
}

// lookUp asks the local block, and the peers where there is none or it cannot be read.
func (r *Read) lookUp() Outcome {
	value, found, err := r.handle.Get(r.partition, r.query.Key, &r.scratch)
	if r.Timed {
		r.Lookup = time.Since(r.start)
	}
	r.lap(lapBlock)
	r.local = !errors.Is(err, version.ErrNotLocal)
	switch {
	case !r.local:
		return r.elsewhere(false)
	case err != nil:
		r.logUnreadable(err)
		return r.elsewhere(true)
	case !found:
		return Absent
	}
	r.Length, r.Bytes = value.Len(), value.Bytes()
	if !value.Large() && r.Bytes == nil {
		r.Bytes = []byte{}
	}
	r.ETag = appendTag(r.etag[:0], value.Hash())
	r.LastModified, r.ContentType, r.AcceptRanges = r.labels.lastModified, r.labels.contentType, bytesUnit
	r.body = Body{r: r, value: value, began: r.start}
	return Found
}

var bytesUnit = []byte("bytes")

// elsewhere asks the peers that hold the partition, which is not here or cannot be read here.
func (r *Read) elsewhere(unreadable bool) Outcome {
	outcome := Unreachable
	if r.query.fromPeer() {
		outcome = NotLocal
	} else if peers := r.handle.Peers(r.partition); r.reader.opts.Proxy != nil && len(peers) > 0 {
		outcome = r.ask(peers)
		r.lap(lapPeers)
		if outcome <= Conditional {
			return outcome
		}
	}
	if unreadable || r.reader.opts.Proxy == nil && !r.query.fromPeer() { // alone, this node has lost the partition
		return Unreadable
	}
	return outcome
}

// ask asks peers for the key in this very version.
func (r *Read) ask(peers []string) Outcome {
	q, fields := r.query, r.fields()
	r.asked = proxy.Query{Peers: peers, Head: q.Head, Path: q.Path, Version: r.handle.Version(), Fields: fields, Trace: r.trace}
	a, err := r.reader.opts.Proxy.Fetch(r.reader.ending, &r.asked)
	if r.Timed {
		r.Asking = time.Since(r.start) - r.Lookup
	}
	switch {
	case errors.Is(err, context.Canceled):
		return GivenUp
	case err != nil:
		r.reader.log.Error("asking peers", "target", r.target(), "peers", peers, "error", err)
		if errors.Is(err, context.DeadlineExceeded) {
			return Late
		}
		return Unreachable
	}
	r.answered = a.Body
	if a.Status != 200 && a.Status != 404 && len(q.Fields) == 0 {
		return Unreachable // there was no condition to answer
	}
	r.Peer, r.Status, r.Length, r.Bytes = a.Peer, a.Status, a.Length, a.Value
	r.ETag, r.LastModified, r.ContentType = a.Header.ETag, a.Header.LastModified, a.Header.ContentType
	r.AcceptRanges, r.ContentRange = a.Header.AcceptRanges, a.Header.ContentRange
	r.body = Body{r: r, began: r.start}
	switch a.Status {
	case 200, 206:
		return Found
	case 404:
		return Absent
	}
	return Conditional
}

// Names of the headers that nodes of a cluster add to what they ask each other.
const (
	// SecretHeader is the credential of the cluster.
	SecretHeader = "X-Sequins-Cluster"
	// PlanHeader names the plan by which the version was loaded. A peer that has loaded it by another one
	// does not have it. A request without it comes from an older release.
	PlanHeader = "X-Sequins-Plan"
)

// fields returns the header of a request to peers: the credential of the cluster, never that of the client,
// since a peer's address is from ZooKeeper. Where the request has a span here, proxy adds that of the attempt.
func (r *Read) fields() []proxy.Field {
	to := r.asked.Fields[:0]
	add := func(name string, value []byte) {
		if len(value) > 0 {
			to = append(to, proxy.Field{Name: name, Value: value})
		}
	}
	add(SecretHeader, r.reader.secret)
	to = append(to, r.query.Fields...)
	if r.trace == nil {
		add("Traceparent", r.traceparent)
		add("Tracestate", r.tracestate)
	}
	add(PlanHeader, r.labels.plan)
	return to
}

// Retry asks the peers for a local value of which Body could not read the first byte.
func (r *Read) Retry() Outcome {
	r.body.close()
	r.body = Body{}
	r.Result = Result{Version: r.Version}
	return r.elsewhere(true)
}

// Done counts the request and ends its span, which is described by a together with what Do has found. It
// returns the duration of the request.
func (r *Read) Done(a tracing.Answer) time.Duration {
	d := time.Since(r.start)
	m := r.reader.opts.Metrics
	m.End(r.stripe)
	r.counts.Done(r.stripe, a.Status, d, a.Bytes)
	if n := r.scratch.Reads(); n != r.pages {
		r.counts.Read(r.stripe, n-r.pages)
		r.pages = n
	}
	if r.trace != nil {
		r.endTrace(a)
	}
	return d
}

// endTrace ends the span. It has nothing of the request but names of what exists: no part of a key.
func (r *Read) endTrace(a tracing.Answer) {
	a.Version, a.Partition = string(r.Version), r.partition
	if r.db != nil {
		a.DB = r.db.name
	}
	r.trace.End(a)
}

// LetGo gives back what the value is in, the version or the connection to a peer. What has been copied can
// be sent after that.
func (r *Read) LetGo() {
	r.body.close()
	if r.answered != nil {
		r.answered.Close() //nolint:errcheck // it has been passed on, or cannot be
		r.answered = nil
	}
	if r.handle != nil {
		r.handle.Release()
		r.handle = nil
	}
}

// Release gives back everything that the request holds.
func (r *Read) Release() {
	r.LetGo()
	r.Result, r.body = Result{}, Body{}
	r.Timed, r.local, r.Lookup, r.Asking = false, false, 0, 0
	r.db, r.labels, r.query, r.laps = nil, nil, nil, nil
	r.trace, r.asked.Trace = nil, nil
	r.traceparent, r.tracestate = nil, nil
}

func (r *Read) logUnreadable(err error) {
	r.reader.log.Error("reading a block", "target", r.target(), "version", r.handle.Version(), "partition", r.partition, "error", err)
}

// target is the db and the key as a log shows them.
func (r *Read) target() string { return string(AppendTarget(nil, r.query.DB, r.query.Key)) }
