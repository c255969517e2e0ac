package reads

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/internal/wire"
	"sequins/observe/metrics"
	"sequins/observe/tracing"
	"sequins/proxy"
	"sequins/version"
)

// Query is a request for a key. Its slices must not change until Release.
type Query struct {
	DB, Key []byte
	// Version is the version that another node requests by name, or "true" for the current one. It is empty
	// for a client's request.
	Version []byte
	// AtLeast makes a read of an older version end with Behind; it may be empty.
	AtLeast []byte
	// Exact is the only version that is read: the current one, or one that it has replaced and that can still be
	// read. Otherwise the read ends with Gone. It may be empty, and is not used if Version is set.
	Exact []byte
	// Content is the code of the content that another node requests (see wire.Content). Empty is any content of Version. It is not used for
	// a client's request.
	Content []byte
	// Redis counts the request as one of the Redis protocol.
	Redis bool
	// Head requests the metadata without the value.
	Head bool
	// Fields are sent with requests to other nodes.
	Fields []proxy.Field

	after content.Content // of the cursor of an ordered read
}

// fromPeer reports whether another node sent the request.
func (q *Query) fromPeer() bool { return len(q.Version) > 0 }

// countsOf returns the counters of the request among those of its db.
func (q *Query) countsOf(k *metrics.Keys) *metrics.Requests {
	if q.Redis {
		return k.Redis
	}
	return k.Of(q.fromPeer())
}

// Outcome is the result of a read.
type Outcome uint8

// Found, Absent and Conditional are answers; the others are reasons why there is none.
const (
	Found       Outcome = iota
	Absent              // the version does not have the key
	Conditional         // a peer evaluated the conditions among Query.Fields; Result.Status is its answer, without a value
	NoDB                // there is no such db
	NotHere             // a peer requests a db or a version that this node does not have
	NotLocal            // a peer requests a partition that this node does not hold
	Unready             // no version of the db is readable yet
	Behind              // the version is older than Query.AtLeast
	Gone                // Query.Exact cannot be read, or has been replaced and no peer could answer
	Expired             // the version of Range.After cannot be read
	BadCursor           // Range.After is not a cursor of this db
	TooLarge            // the keys or the values of a batch are larger than Options.MaxBatchBytes
	Busy                // the batches, or the ordered reads, of all requests need too much memory at the moment
	Unreadable          // the local block cannot be read, or is lost on a single node, and no peer answered
	Unreachable         // no peer could answer
	Late                // the peers timed out
	GivenUp             // the node is shutting down
	TooSlow             // the client reads too slowly from a version of which something is being removed; see Body
)

// Result is the result of Do. Its slices are valid until Release.
type Result struct {
	// Version is the name of the version that was read; empty if there is none.
	Version []byte
	// Content is the code of the content that was read; empty if there is none.
	Content []byte
	// Peer is the address of the node that answered; empty for this node.
	Peer string
	// Status is the HTTP status of a peer's answer.
	Status int
	// Length is the length of the value in bytes, or of the part that a peer sent; -1 if unknown.
	Length int64
	// Bytes is the value; nil if it must be read with Body.
	Bytes []byte
	// The rest are response headers; empty if unknown.
	ETag, LastModified, ContentType, AcceptRanges, ContentRange []byte
}

// A Read is the state of one request at a time. It is reused, and its buffers keep their capacity.
type Read struct {
	Result
	// Timed enables Lookup and Asking. Lookup is the time from the start to the result of the local block. Asking is the time from
	// there to the result of the peers, 0 if none was asked.
	Timed          bool
	Lookup, Asking time.Duration

	// Values are the result of DoBatch, valid until Release.
	Values [][]byte

	reader    *Reader
	stripe    uint32 // of the metrics; sync.Pool tends to return a Read to the same core
	start     time.Time
	counts    *metrics.Requests
	trace     *tracing.Request // nil if the request is not traced
	query     *Query
	db        *database       // nil until found
	handle    *version.Handle // nil until acquired
	labels    *labels
	partition int
	local     bool // this node holds the partition
	body      Body
	batch     *batch       // nil before the first DoBatch
	scan      *Scan        // nil unless the request is an ordered read
	holders   [][]string   // by partition, of a comparison; nil: those that advertise it
	held      atomic.Int64 // bytes reserved, see Reserve
	sending   time.Time    // the first WriteBy; zero before
	sent      int64        // bytes in WriteBy

	traceparent, tracestate []byte // of the request, forwarded to peers

	scratch blocks.Scratch
	pages   uint64 // pages read with scratch that were counted
	asked   proxy.Query
	path    []byte // of requests to other nodes
	etag    [18]byte
}

// maxPath is the capacity in bytes that Read.path keeps.
const maxPath = 4 << 10

// Begin begins a request. It counts as invalid unless Do or CountAs changes that.
func (r *Read) Begin(start time.Time) {
	r.start, r.partition = start, -1
	r.counts = r.reader.opts.Metrics.Invalid
	r.reader.opts.Metrics.Begin(r.stripe)
}

// Start returns the time when the request began.
func (r *Read) Start() time.Time { return r.start }

// CountAs sets the counters of the request.
func (r *Read) CountAs(c *metrics.Requests) { r.counts = c }

// Trace starts a span for the request if it is sampled. Both headers are forwarded to the nodes that are
// asked for the key. A request from another node never starts a new trace.
func (r *Read) Trace(traceparent, tracestate []byte, fromPeer bool) {
	r.traceparent, r.tracestate = traceparent, tracestate
	r.trace = r.reader.opts.Tracer.Request(traceparent, tracestate, !fromPeer, r.start)
}

// Do looks the key up. The result is valid until Release.
func (r *Read) Do(q *Query) Outcome {
	if o := r.open(q); o != Found {
		return o
	}
	if r.handle.Partitions == 0 {
		return Absent
	}
	r.partition = r.handle.Partition(q.Key)
	return r.lookUp()
}

// open acquires the version that q asks for. It returns Found, or the reason why there is none. Without a secret a client can ask like another node,
// and gets nothing of a version that is withheld from clients.
func (r *Read) open(q *Query) Outcome {
	o := r.openAny(q)
	if o == Found && q.fromPeer() && len(r.reader.secret) == 0 && r.handle.Withheld() {
		return NotHere
	}
	return o
}

// openAny is open, also for a version that is withheld.
func (r *Read) openAny(q *Query) Outcome {
	r.query = q
	r.counts = q.countsOf(r.reader.opts.Metrics.Unknown)
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
	case r.handle == nil && len(q.Exact) > 0 && set.Current().Name != "":
		return Gone
	case r.handle == nil:
		return Unready
	}
	r.labels = r.db.labelsOf(r.reader, r.handle)
	r.Version, r.Content = r.labels.version, r.labels.content
	if string(r.Version) < string(q.AtLeast) {
		return Behind
	}
	return Found
}

// acquire acquires the requested version. r.handle stays nil if this node does not have the content that the
// requesting peer asks for.
func (r *Read) acquire(set *version.Set) {
	q := r.query
	r.db = r.reader.database(q.DB)
	r.counts = q.countsOf(r.db.counts)
	switch {
	case q.fromPeer() && string(q.Version) != "true":
		r.handle = set.AcquireVersion(string(q.Version), string(q.Content))
	case len(q.Exact) > 0:
		r.handle = set.AcquireServed(string(q.Exact), q.after.Code())
	default:
		r.handle = set.Acquire()
	}
}

// lookUp searches the local block. If there is none or it cannot be read, lookUp asks the peers.
func (r *Read) lookUp() Outcome {
	value, found, err := r.handle.Get(r.partition, r.query.Key, &r.scratch)
	if r.Timed {
		r.Lookup = time.Since(r.start)
	}
	r.local = !errors.Is(err, version.ErrNotLocal)
	switch {
	case !r.local:
		return r.elsewhere(false)
	case err != nil:
		r.logUnreadable(r.partition, err)
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
	r.body = Body{r: r, ctx: r.reader.ending, key: r.query.Key, value: value, local: true, size: value.Len()}
	return Found
}

var bytesUnit = []byte("bytes")

// elsewhere asks the peers that hold the partition, because this node does not or cannot read it.
func (r *Read) elsewhere(unreadable bool) Outcome {
	outcome := Unreachable
	if r.query.fromPeer() {
		outcome = NotLocal
	} else if peers := r.handle.Following.Peers(r.partition); r.reader.opts.Proxy != nil && len(peers) > 0 {
		outcome = r.ask(peers)
		if outcome <= Conditional {
			return outcome
		}
	}
	if unreadable || r.reader.opts.Proxy == nil && !r.query.fromPeer() { // a single node has lost the partition
		return Unreadable
	}
	return r.goneIfReplaced(outcome)
}

// goneIfReplaced returns Gone in place of Unreachable for a replaced version that was requested by name, because nodes
// remove it at different times. Otherwise it returns o.
func (r *Read) goneIfReplaced(o Outcome) Outcome {
	if o == Unreachable && len(r.query.Exact) > 0 && r.handle.Replaced() {
		return Gone
	}
	return o
}

// ask asks peers for the key in the acquired version.
func (r *Read) ask(peers []string) Outcome {
	q := r.query
	r.path = AppendEscaped(append(AppendEscaped(append(r.path[:0], '/'), q.DB), '/'), q.Key)
	r.asked = proxy.Query{Peers: peers, Head: q.Head, Path: r.path, Version: r.handle.Name, Content: r.labels.content, Fields: r.fields(q.Fields), Trace: r.trace}
	a, err := r.reader.opts.Proxy.Fetch(r.reader.ending, &r.asked)
	if r.Timed {
		r.Asking = time.Since(r.start) - r.Lookup
	}
	if err != nil {
		return r.fetchError(peers, err)
	}
	r.body = Body{r: r, ctx: r.reader.ending, key: q.Key, source: a.Body, peer: a.Peer, size: a.Length, partial: a.Status == 206}
	if a.Status != 200 && a.Status != 404 && len(q.Fields) == 0 {
		return Unreachable // the request was unconditional
	}
	r.Peer, r.Status, r.Length, r.Bytes = a.Peer, a.Status, a.Length, a.Value
	r.ETag, r.LastModified, r.ContentType = a.Header.ETag, a.Header.LastModified, a.Header.ContentType
	r.AcceptRanges, r.ContentRange = a.Header.AcceptRanges, a.Header.ContentRange
	switch a.Status {
	case 200, 206:
		return Found
	case 404:
		return Absent
	}
	return Conditional
}

// fetchError logs that peers were asked in vain, and returns what becomes of the request.
func (r *Read) fetchError(peers []string, err error) Outcome {
	o := outcomeOf(err)
	if o != GivenUp {
		r.reader.log.Error("asking peers", "target", r.target(), "peers", peers, "error", err)
	}
	return o
}

func outcomeOf(err error) Outcome {
	switch {
	case errors.Is(err, context.Canceled):
		return GivenUp
	case errors.Is(err, context.DeadlineExceeded):
		return Late
	}
	return Unreachable
}

// fields returns the header of a request to peers: the credential of the cluster, and never that of the
// client, because the peers' addresses come from ZooKeeper. If the request is traced here, proxy adds the
// span of each attempt.
func (r *Read) fields(conditions []proxy.Field) []proxy.Field {
	to := r.asked.Fields[:0]
	add := func(name string, value []byte) {
		if len(value) > 0 {
			to = append(to, proxy.Field{Name: name, Value: value})
		}
	}
	add(wire.Secret, r.reader.secret)
	to = append(to, conditions...)
	if r.trace == nil {
		add(wire.Traceparent, r.traceparent)
		add(wire.Tracestate, r.tracestate)
	}
	return to
}

// Done counts the request, ends its span with the attributes in a and of the result, and returns its
// duration.
func (r *Read) Done(a tracing.Answer) time.Duration {
	d := time.Since(r.start)
	m := r.reader.opts.Metrics
	m.End(r.stripe)
	r.counts.Done(r.stripe, a.Status, d, a.Bytes)
	if n := r.scratch.Reads(); n != r.pages {
		r.counts.Read(r.stripe, n-r.pages)
		r.pages = n
	}
	if b := r.batch; b != nil && b.scratch.Reads() != b.pages {
		r.counts.Read(r.stripe, b.scratch.Reads()-b.pages)
		b.pages = b.scratch.Reads()
	}
	if r.trace != nil {
		a.Version, a.Partition = string(r.Version), r.partition // which are of what exists; the span has no part of the key
		if r.db != nil {
			a.DB = r.db.name
		}
		r.trace.End(a)
	}
	return d
}

// LetGo releases the version and the connection to a peer. Copied values can still be sent.
func (r *Read) LetGo() {
	if r.scan != nil {
		r.scan.close()
		r.scan = nil
	}
	r.body.Close() //nolint:errcheck // it has been passed on, or cannot be
	if r.handle != nil {
		r.handle.Release()
		r.handle = nil
	}
}

// Release releases everything that the request holds.
func (r *Read) Release() {
	r.LetGo()
	r.Result, r.body = Result{}, Body{}
	r.Timed, r.local, r.Lookup, r.Asking = false, false, 0, 0
	r.db, r.labels, r.query = nil, nil, nil
	r.trace, r.asked.Trace = nil, nil
	r.traceparent, r.tracestate = nil, nil
	if clear(r.Values); cap(r.Values) > maxKept/8 {
		r.Values = nil
	}
	if r.batch != nil {
		r.batch.release()
	}
	r.reader.reserved.Add(-r.held.Swap(0))
	r.sending, r.sent = time.Time{}, 0
	if cap(r.path) > maxPath {
		r.path = nil
	}
}

func (r *Read) report(partition int, b version.Block, err error) {
	r.handle.Report(partition, b, err)
	r.logUnreadable(partition, err)
}

func (r *Read) logUnreadable(partition int, err error) {
	r.reader.log.Error("reading a block", "target", r.target(), "version", r.handle.Name, "partition", partition, "error", err)
}

func (r *Read) target() string { return string(AppendTarget(nil, r.query.DB, r.query.Key)) }
