package reads

import (
	"net/http"

	"github.com/cespare/xxhash/v2"

	"sequins/proxy"
)

// The cache has answers of other nodes. Its entries belong to a version by Handle.ID, so that neither a later version nor
// another content of the same name is answered from them, and a session reads what it would read without the cache.
//
// Only unconditional requests use it, and only values of up to 64 KiB and the absence of keys are kept, from answers that
// name the content that was asked for: upstream's nodes do not, and may have another one. Concurrent misses of a key are not
// collapsed: they end with the first answer, a round trip later, and each is hedged and times out on its own.

// usesCache reports whether the request may be answered from the cache.
func (r *Read) usesCache() bool {
	return r.reader.cache != nil && len(r.query.Fields) == 0
}

// lookUpCache answers from the cache, and reports whether it could. The header is that of a local value of the same content.
func (r *Read) lookUpCache() (o Outcome, ok bool) {
	if !r.usesCache() {
		return o, false
	}
	value, ok := r.reader.cache.Get(r.handle.ID(), r.query.Key)
	if !ok {
		r.db.counts.CacheMisses(1)
		return o, false
	}
	r.db.counts.CacheHits(1)
	r.cached = true
	if value == nil {
		return Absent, true
	}
	r.Length, r.Bytes = int64(len(value)), value
	r.ETag = appendTag(r.etag[:0], xxhash.Sum64(value))
	r.LastModified, r.ContentType, r.AcceptRanges = r.labels.lastModified, r.labels.contentType, bytesUnit
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
		c.Put(id, r.query.Key, nil)
	case a.Status == http.StatusOK && !r.query.Head && a.Value != nil:
		c.Put(id, r.query.Key, a.Value)
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
			value, known := r.reader.cache.Get(r.handle.ID(), b.keys[uint32(o)])
			if !known {
				rest.order = append(rest.order, o)
				continue
			}
			hits++
			if o := b.count(r, int64(len(value))); o != Found {
				return nil, o
			}
			r.Values[uint32(o)] = value
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

// fillCache stores the values of a complete answer.
func (b *batch) fillCache(r *Read, g *replicaGroup) {
	for _, p := range g.parts {
		for _, o := range p.order {
			r.reader.cache.Put(r.handle.ID(), b.keys[uint32(o)], r.Values[uint32(o)])
		}
	}
}
