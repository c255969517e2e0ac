package reads

import (
	"net/http"
	"time"

	"sequins/proxy"
	"sequins/reads/internal/cache"
	"sequins/version"
)

// The cache has answers of other nodes. Its entries belong to a version by Handle.ID, so that neither a later version nor
// another content of the same name is answered from them, and a session reads what it would read without the cache.
//
// Only unconditional requests use it, and only values of up to 64 KiB and the absence of keys are kept, from answers that
// name the content that was asked for: upstream's nodes do not, and may have another one. Concurrent misses of a key are not
// collapsed: they end with the first answer, a round trip later, and each is hedged and times out on its own.

// dropPeriod is the interval at which entries of versions that are gone are removed.
const dropPeriod = 10 * time.Second

func (rd *Reader) dropLoop() {
	t := time.NewTicker(dropPeriod)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			rd.dropReplaced()
		case <-rd.ending.Done():
			return
		}
	}
}

// dropReplaced removes the entries of versions that cannot be read any more.
func (rd *Reader) dropReplaced() {
	var sets []*version.Set
	for name := range *rd.databases.Load() {
		if set := rd.catalog.Set([]byte(name)); set != nil {
			sets = append(sets, set)
		}
	}
	rd.cache.Drop(func(id uint64) bool {
		for _, set := range sets {
			if set.Readable(id) {
				return true
			}
		}
		return false
	})
}

// usesCache reports whether the request may be answered from the cache.
func (r *Read) usesCache() bool {
	return r.reader.cache != nil && len(r.query.Fields) == 0
}

// lookUpCache answers from the cache, and reports whether it could. The media type is that of this node's configuration,
// which may have changed since the answer was cached.
func (r *Read) lookUpCache() (o Outcome, ok bool) {
	if !r.usesCache() {
		return o, false
	}
	e := r.reader.cache.Get(r.handle.ID(), r.query.Key)
	if e == nil || e.Bare && e.Value != nil {
		r.db.counts.CacheMisses(1)
		return o, false
	}
	r.db.counts.CacheHits(1)
	r.cached = true
	if e.Value == nil {
		return Absent, true
	}
	r.Length, r.Bytes = int64(len(e.Value)), e.Value
	r.ETag, r.LastModified, r.AcceptRanges = e.ETag, e.LastModified, e.AcceptRanges
	r.ContentType = r.labels.contentType
	r.body = Body{r: r, began: r.start}
	return Found, true
}

// mayCache reports whether a peer's answer is from the same content, and may be cached.
func (r *Read) mayCache(a *proxy.Answer) bool {
	return r.usesCache() && string(a.Header.Content) == string(r.Content)
}

// fillCache stores a peer's answer. Its body must not have been read.
func (r *Read) fillCache(a *proxy.Answer) {
	if !r.mayCache(a) {
		return
	}
	id, c := r.handle.ID(), r.reader.cache
	switch {
	case a.Status == http.StatusNotFound:
		c.Put(id, r.query.Key, cache.Entry{})
	case a.Status == http.StatusOK && !r.query.Head && a.Value != nil:
		h := &a.Header
		c.Put(id, r.query.Key, cache.Entry{Value: a.Value, ETag: h.ETag, LastModified: h.LastModified, AcceptRanges: h.AcceptRanges})
	}
}

// lookUpCache sets the values of keys that are in the cache, and returns those that are not.
func (b *batch) lookUpCache(r *Read, parts []partitionKeys) (missing []partitionKeys, o Outcome) {
	if !r.usesCache() {
		return parts, Found
	}
	hits, misses := 0, 0
	for _, p := range parts {
		rest := partitionKeys{partition: p.partition}
		for _, o := range p.order {
			e := r.reader.cache.Get(r.handle.ID(), b.keys[uint32(o)])
			if e == nil {
				rest.order = append(rest.order, o)
				continue
			}
			hits++
			if o := b.count(r, int64(len(e.Value))); o != Found {
				return nil, o
			}
			r.Values[uint32(o)] = e.Value
		}
		if len(rest.order) > 0 {
			misses += len(rest.order)
			missing = append(missing, rest)
		}
	}
	r.db.counts.CacheHits(hits)
	r.db.counts.CacheMisses(misses)
	return missing, Found
}

// fillCache stores the values of a complete answer, which has no header for each. Absent keys need none.
func (b *batch) fillCache(r *Read, g *replicaGroup) {
	for _, p := range g.parts {
		for _, o := range p.order {
			r.reader.cache.Put(r.handle.ID(), b.keys[uint32(o)], cache.Entry{Value: r.Values[uint32(o)], Bare: true})
		}
	}
}
