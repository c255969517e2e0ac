package reads

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"sequins/blocks"
)

// batch is the state of DoBatch. Its slices keep their capacity.
type batch struct {
	keys    [][]byte
	order   []uint64        // partition<<32 | index in keys, ascending
	here    []partitionKeys // of partitions on this node
	scratch blocks.BatchScratch
	some    [][]byte        // keys of one partition
	results []blocks.Result // of them
	pages   uint64          // pages read with scratch that were counted
	size    atomic.Int64    // bytes of the values so far
	lost    []partitionKeys // partitions whose local block cannot be read
}

type partitionKeys struct {
	partition int
	order     []uint64 // part of batch.order
}

// batchBudget is how many batches of the maximum size may be in memory at a time.
const batchBudget = 4

// maxKept is the capacity in bytes, and the number of keys, that a batch keeps for the next one.
const maxKept = 1 << 20

// DoBatch looks up several keys of one db, all in the same version. q.Key is not used. After Found,
// Values[i] is the value of keys[i], nil if the version does not have the key; some may be absent. Keys may repeat. Any
// other outcome is the reason why the batch has no answer: it has one for all keys or none.
//
// Keys of partitions on other nodes are requested from them, with one request for all partitions that the same nodes
// hold. keys must not change until Release.
func (r *Read) DoBatch(q *Query, keys [][]byte) Outcome {
	if o := r.open(q); o != Found {
		return o
	}
	if !q.Redis && !q.fromPeer() {
		r.counts = r.db.counts.Batches
	}
	r.Values = slices.Grow(r.Values[:0], len(keys))[:len(keys)]
	clear(r.Values)
	if r.handle.Partitions == 0 || len(keys) == 0 {
		return Found
	}
	if r.batch == nil {
		r.batch = new(batch)
	}
	return r.batch.do(r, keys)
}

// Reserve counts n bytes of a batch that the request holds until Release. A front end calls it before it reads the keys
// into memory, and DoBatch for the values. It returns Found, TooLarge if the request holds too much, or Busy if all
// requests together do.
func (r *Read) Reserve(n int64) Outcome {
	limit := r.reader.opts.MaxBatchBytes
	if r.held.Load()+n > 2*limit { // keys and values
		return TooLarge
	}
	if r.reader.reserved.Add(n) > batchBudget*2*limit {
		r.reader.reserved.Add(-n)
		return Busy
	}
	r.held.Add(n)
	return Found
}

// Unreserve takes back n bytes of what the request has reserved.
func (r *Read) Unreserve(n int64) {
	r.held.Add(-n)
	r.reader.reserved.Add(-n)
}

func (b *batch) do(r *Read, keys [][]byte) Outcome {
	b.keys, b.lost = keys, b.lost[:0]
	b.scratch.Reset()
	b.size.Store(0)
	b.order = b.order[:0]
	for i, key := range keys {
		b.order = append(b.order, uint64(r.handle.Partition(key))<<32|uint64(i))
	}
	if r.handle.Partitions > 1 {
		slices.Sort(b.order)
	}
	var remote fetches
	outcome := b.local(r, &remote)
	if outcome == Found && len(b.lost) > 0 {
		outcome = b.away(r, &remote, b.lost, true)
	}
	remote.running.Wait()
	if outcome == Found {
		outcome = Outcome(remote.outcome.Load())
	}
	if outcome == Unreachable && len(b.lost) > 0 {
		outcome = Unreadable
	}
	return r.goneIfReplaced(outcome)
}

// local looks up the keys of partitions on this node, while other nodes are asked for the rest.
func (b *batch) local(r *Read, remote *fetches) Outcome {
	var elsewhere []partitionKeys
	b.here = b.here[:0]
	for rest := b.order; len(rest) > 0; {
		partition, n := int(rest[0]>>32), 1
		for n < len(rest) && int(rest[n]>>32) == partition {
			n++
		}
		p := partitionKeys{partition, rest[:n]}
		if r.handle.Has(partition) {
			b.here = append(b.here, p)
		} else {
			elsewhere = append(elsewhere, p)
		}
		rest = rest[n:]
	}
	if len(elsewhere) > 0 {
		if o := b.away(r, remote, elsewhere, false); o != Found {
			return o
		}
	}
	for _, p := range b.here {
		if o := b.lookUp(r, p); o != Found {
			return o
		}
	}
	return Found
}

// lookUp looks up the keys of a partition in its local block, some at a time.
func (b *batch) lookUp(r *Read, p partitionKeys) Outcome {
	for rest := p.order; len(rest) > 0; {
		n := min(len(rest), blocks.BatchSize)
		readable, o := b.lookUpSome(r, partitionKeys{p.partition, rest[:n]})
		if !readable {
			b.lost = append(b.lost, partitionKeys{p.partition, rest})
			return Found
		}
		if o != Found {
			return o
		}
		rest = rest[n:]
	}
	return Found
}

// lookUpSome looks up keys of a partition in its local block, unless it is not readable.
func (b *batch) lookUpSome(r *Read, p partitionKeys) (readable bool, o Outcome) {
	b.some = b.some[:0]
	for _, o := range p.order {
		b.some = append(b.some, b.keys[uint32(o)])
	}
	b.results = slices.Grow(b.results[:0], len(b.some))[:len(b.some)]
	err := r.handle.GetBatch(p.partition, b.some, b.results, &b.scratch)
	if err != nil { // the block has been dropped since
		return false, Found
	}
	n := int64(0) // bytes of the values that were found
	for i := range b.results {
		if b.results[i].Found {
			n += b.results[i].Value.Len()
		}
	}
	if o := b.count(r, n); o != Found {
		return true, o
	}
	for i, o := range p.order {
		res := &b.results[i]
		if res.Err == nil && res.Found {
			b.keep(r, int(uint32(o)), res)
		}
		if res.Err != nil {
			r.report(p.partition, res.Value.Reader(), res.Err)
			b.uncount(r, n)
			return false, Found
		}
	}
	return true, Found
}

// keep keeps a local value. It reads a large one; an error of that is in res.Err.
func (b *batch) keep(r *Read, index int, res *blocks.Result) {
	value := res.Value.Bytes()
	switch {
	case res.Value.Large():
		value = make([]byte, res.Value.Len())
		s := res.Value.Section(0, res.Value.Len())
		_, res.Err = io.ReadFull(s, value)
		s.Close() //nolint:errcheck // it was only read from
	case value == nil:
		value = []byte{}
	}
	r.Values[index] = value
}

func (b *batch) count(r *Read, n int64) Outcome {
	if b.size.Add(n) > r.reader.opts.MaxBatchBytes {
		return TooLarge
	}
	return r.Reserve(n)
}

// uncount takes count back.
func (b *batch) uncount(r *Read, n int64) {
	b.size.Add(-n)
	r.Unreserve(n)
}

// release frees what is too large to be kept.
func (b *batch) release() {
	b.keys = nil
	clear(b.some[:cap(b.some)])
	clear(b.results[:cap(b.results)])
	if cap(b.order) > maxKept/8 {
		*b = batch{}
	}
}

// fetches are the requests of a batch to other nodes.
type fetches struct {
	running sync.WaitGroup
	outcome atomic.Uint32 // the first that is not Found
}
