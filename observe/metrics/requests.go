package metrics

import (
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// codes are the statuses with a counter of their own; others are counted as
// codeOther.
var codes = [...]int{
	200, 206, 304,
	400, 401, 403, 404, 405, 408, 410, 412, 413, 414, 416, 431, 499,
	500, 501, 502, 503, 504,
}

const codeOther = len(codes)

func codeLabel(i int) string {
	if i == codeOther {
		return "other"
	}
	return strconv.Itoa(codes[i])
}

// stripe is one set of counters. Cores that use different stripes do not share
// cache lines.
type stripe struct {
	codes   [len(codes) + 1]atomic.Uint64
	buckets [bucketCount]atomic.Uint64
	nanos   atomic.Uint64
	bytes   atomic.Uint64
	reads   atomic.Uint64
	running atomic.Int64 // in those of Server.Invalid, all requests in progress
	_       [64]byte
}

// Stripes is the number of sets of counters: the lowest power of two that is at
// least the number of cores, at most 64.
var Stripes = func() uint32 {
	n := uint32(1)
	for n < 64 && n < uint32(runtime.NumCPU()) {
		n *= 2
	}
	return n
}()

// Requests counts the requests of one route to one db. It is safe for
// concurrent use.
type Requests struct {
	route, db string
	stripes   []stripe
}

func newRequests(route, db string) *Requests {
	return &Requests{route: route, db: db, stripes: make([]stripe, Stripes)}
}

// Keys counts the requests for keys of one db. Requests of clients and of other
// nodes are counted apart: only the former, on the node that the client connects
// to, show the latency and errors that clients see. Batches are those of clients. Redis are the requests of the Redis
// protocol, of one key or of several.
type Keys struct {
	Clients, Peers, Batches, Scans, Redis *Requests

	read   period                 // the counters when they were read last; FollowTraffic alone uses it
	period atomic.Pointer[period] // the last whole one
}

func newKeys(db string) *Keys {
	return &Keys{Clients: newRequests(RouteKey, db), Peers: newRequests(RoutePeer, db), Batches: newRequests(RouteBatch, db),
		Scans: newRequests(RouteScan, db), Redis: newRequests(RouteRedis, db), read: period{end: time.Now()}}
}

// Of returns the counters of requests from other nodes if fromPeer is set,
// otherwise those from clients.
func (k *Keys) Of(fromPeer bool) *Requests {
	if fromPeer {
		return k.Peers
	}
	return k.Clients
}

// Done counts one finished request. stripe is any number; a caller that always
// runs on the same core should always use the same one. bytes is the size of the
// body.
func (r *Requests) Done(stripe uint32, code int, d time.Duration, bytes int64) {
	s := r.stripe(stripe)
	i := slices.Index(codes[:], code)
	if i < 0 {
		i = codeOther
	}
	s.codes[i].Add(1)
	s.buckets[bucket(d)].Add(1)
	s.nanos.Add(uint64(max(d, 0)))
	if bytes > 0 {
		s.bytes.Add(uint64(bytes))
	}
}

// Read counts pages of blocks that were read from files.
func (r *Requests) Read(stripe uint32, pages uint64) {
	r.stripe(stripe).reads.Add(pages)
}

func (r *Requests) stripe(any uint32) *stripe { return &r.stripes[any&uint32(len(r.stripes)-1)] }

// totals is the sum over the stripes.
type totals struct {
	codes   [len(codes) + 1]uint64
	buckets [bucketCount]uint64
	nanos   uint64
	bytes   uint64
	reads   uint64
	running int64
}

func (r *Requests) totals() (t totals) {
	for i := range r.stripes {
		s := &r.stripes[i]
		for j := range s.codes {
			t.codes[j] += s.codes[j].Load()
		}
		for j := range s.buckets {
			t.buckets[j] += s.buckets[j].Load()
		}
		t.nanos += s.nanos.Load()
		t.bytes += s.bytes.Load()
		t.reads += s.reads.Load()
		t.running += s.running.Load()
	}
	return t
}

func (t *totals) any() bool { return t.codes != [len(codes) + 1]uint64{} }
