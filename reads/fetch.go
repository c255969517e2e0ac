package reads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"sequins/blocks"
	"sequins/internal/wire"
	"sequins/proxy"
)

// Batches in frames, between nodes and for clients. The request is the frames of the keys. The answer is those of the values,
// in the order of the keys.

var errBatch = errors.New("a malformed answer to a batch")

// keysPerScale is the number of keys of a batch for which a peer gets as much time as for a single key.
const keysPerScale = 64

// replicaGroup are the keys of a batch whose partitions are held by the same nodes.
type replicaGroup struct {
	peers []string // sorted
	parts []partitionKeys
}

// away requests the keys of partitions that this node does not hold, or, if unreadable is set, cannot read.
func (b *batch) away(r *Read, remote *fetches, parts []partitionKeys, unreadable bool) Outcome {
	switch {
	case r.query.fromPeer() && unreadable:
		return Unreadable
	case r.query.fromPeer():
		return NotLocal
	case r.reader.opts.Proxy == nil:
		return Unreadable
	}
	groups := r.replicaGroups(parts, nil)
	if slices.ContainsFunc(groups, func(g *replicaGroup) bool { return len(g.peers) == 0 }) {
		return Unreachable
	}
	fields := slices.Clone(r.fields(r.query.Fields)) // shared by all requests
	for _, g := range groups {
		remote.running.Go(func() { remote.outcome.CompareAndSwap(uint32(Found), uint32(b.fetch(r, g, nil, fields))) })
	}
	return Found
}

// replicaGroups groups partitions by the nodes that hold them and have not been asked, so that each group needs one
// request, which all of its nodes can answer.
func (r *Read) replicaGroups(parts []partitionKeys, asked []string) []*replicaGroup {
	var groups []*replicaGroup
	for _, p := range parts {
		peers := slices.Sorted(slices.Values(r.peers(p.partition)))
		peers = slices.DeleteFunc(peers, func(addr string) bool { return slices.Contains(asked, addr) })
		i := slices.IndexFunc(groups, func(g *replicaGroup) bool { return r.reader.canJoin(g.peers, peers) })
		if i < 0 {
			groups = append(groups, &replicaGroup{peers: peers, parts: []partitionKeys{p}})
			continue
		}
		groups[i].peers = common(groups[i].peers, peers)
		groups[i].parts = append(groups[i].parts, p)
	}
	return groups
}

// canJoin reports whether partitions on the nodes a and partitions on the nodes b, both sorted, can be requested together, from the
// nodes in common: if these are at least two, or all, and include one in the zone of this node unless neither list has one.
func (rd *Reader) canJoin(a, b []string) bool {
	shared := common(a, b)
	if len(shared) < 2 && (len(shared) < len(a) || len(shared) < len(b)) {
		return false
	}
	near := func(addrs []string) bool { return slices.ContainsFunc(addrs, rd.opts.Zones.Near) }
	return near(shared) || !near(a) && !near(b)
}

func (r *Read) peers(partition int) []string {
	if r.holders != nil {
		return r.holders[partition]
	}
	return r.handle.Following.Peers(partition)
}

// common returns the elements that are in both of two sorted lists.
func common(a, b []string) []string {
	both := make([]string, 0, min(len(a), len(b)))
	for _, s := range a {
		if _, found := slices.BinarySearch(b, s); found {
			both = append(both, s)
		}
	}
	return both
}

// fetch requests the keys of a group. If some of its nodes refuse because they lack a partition, they may hold others, so
// the partitions are requested by halves. If its nodes are late or fail, each partition is requested from its other nodes;
// if these are late, too, it is given up, and only this is logged.
func (b *batch) fetch(r *Read, g *replicaGroup, asked []string, fields []proxy.Field) Outcome {
	o, err := b.fetchFrom(r, g, fields)
	var again [][]partitionKeys
	switch n := len(g.parts); {
	case err == nil:
		return o
	case n > 1 && errors.Is(err, proxy.ErrAbsent) && o == Late: // one by one, as each division could take as long again
		again = slices.Collect(slices.Chunk(g.parts, 1))
	case n > 1 && errors.Is(err, proxy.ErrAbsent):
		again = [][]partitionKeys{g.parts[:n/2], g.parts[n/2:]}
	case o == Late && len(asked) == 0 || o == Unreachable:
		asked = append(slices.Clip(asked), g.peers...)
		again = [][]partitionKeys{g.parts}
	default:
		return r.fetchError(g.peers, err)
	}
	for _, parts := range again {
		for _, rest := range r.replicaGroups(parts, asked) {
			if len(rest.peers) == 0 {
				return r.fetchError(g.peers, err)
			}
			if o := b.fetch(r, rest, asked, fields); o != Found {
				return o
			}
		}
	}
	return Found
}

// fetch asks the nodes of q until take accepts an answer, whose body it closes or keeps. A node whose answer it does not accept is
// removed from q.
func (r *Read) fetch(ctx context.Context, q *proxy.Query, take func(*proxy.Answer) error) error {
	last := proxy.ErrNoPeers
	for range q.Peers {
		a, err := r.reader.opts.Proxy.Fetch(ctx, q)
		if err != nil {
			return err
		}
		peer := a.Peer
		if err = take(a); err == nil {
			return nil
		}
		r.reader.log.Error("reading a peer's answer", "db", r.db.name, "version", r.handle.Name, "peer", peer, "error", err)
		q.Peers = slices.DeleteFunc(slices.Clone(q.Peers), func(addr string) bool { return addr == peer })
		last = fmt.Errorf("%w: %w", proxy.ErrNoPeers, err)
	}
	return last
}

// fetchFrom requests the keys of a group from its nodes. The error is the reason of Late and Unreachable.
func (b *batch) fetchFrom(r *Read, g *replicaGroup, fields []proxy.Field) (Outcome, error) {
	body, n := b.request(g)
	q := proxy.Query{Peers: g.peers, Path: AppendEscaped([]byte{'/'}, r.query.DB), Version: r.handle.Name, Content: r.labels.content, Body: body,
		Scale: 1 + n/keysPerScale, Prompt: true, Fields: fields, Trace: r.trace}
	var o Outcome
	err := r.fetch(r.reader.ending, &q, func(a *proxy.Answer) (err error) {
		defer a.Body.Close() //nolint:errcheck // it was only read from
		var n int64
		if o, n, err = b.receive(r, g, a); err != nil {
			b.uncount(r, n)
		}
		return err
	})
	if err != nil {
		return outcomeOf(err), err
	}
	return o, nil
}

func (b *batch) request(g *replicaGroup) (body []byte, n int) {
	body = []byte{} // a request for no keys is a POST, too
	for _, p := range g.parts {
		n += len(p.order)
		for _, o := range p.order {
			body = wire.AppendFrame(body, b.keys[uint32(o)])
		}
	}
	return body, n
}

// receive takes the values of a group from an answer. size is how many bytes it has counted.
func (b *batch) receive(r *Read, g *replicaGroup, a *proxy.Answer) (o Outcome, size int64, err error) {
	switch a.Status {
	case http.StatusOK:
	case http.StatusRequestEntityTooLarge:
		return TooLarge, 0, nil
	default:
		return Found, 0, fmt.Errorf("%w: status %d", errBatch, a.Status)
	}
	left := a.Length
	for _, p := range g.parts {
		for _, i := range p.order {
			n, err := receiveLength(a, &left)
			if err != nil {
				return Found, size, err
			}
			if n == wire.Absent {
				r.Values[uint32(i)] = nil
				continue
			}
			if o := b.count(r, n); o != Found {
				return o, size, nil
			}
			size += n
			value := make([]byte, n)
			if _, err := io.ReadFull(a.Body, value); err != nil {
				return Found, size, err
			}
			r.Values[uint32(i)] = value
		}
	}
	if left != 0 {
		return Found, size, fmt.Errorf("%w: %d bytes follow it", errBatch, left)
	}
	return Found, size, nil
}

// receiveLength reads the length of the next value, or wire.Absent. left is what is left of the answer, in bytes, and is reduced
// by the length and the value.
func receiveLength(a *proxy.Answer, left *int64) (int64, error) {
	if *left -= wire.LengthSize; *left < 0 {
		return 0, fmt.Errorf("%w: it ends early", errBatch)
	}
	n, err := wire.ReadLength(a.Body)
	if err != nil || n == wire.Absent {
		return int64(n), err
	}
	if *left -= int64(n); *left < 0 || n > blocks.MaxValue {
		return 0, fmt.Errorf("%w: a value of %d bytes", errBatch, n)
	}
	return int64(n), nil
}
