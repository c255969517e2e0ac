package server

import (
	"strings"

	"sequins/internal/http1"
	"sequins/internal/wire"
	"sequins/server/internal/negotiate"
)

// Delivery are the settings of how answers are delivered to clients, see SetDelivery. The zero value is that of a new Server.
type Delivery struct {
	// Origins are the origins whose pages may read answers in a browser, such as "https://app.example.com"; see cors.go. "*"
	// means all.
	Origins []string
	// Codings are the content codings that clients may have, the preferred one first; see encode.go. None: nothing is encoded.
	Codings []string
	// MinEncoded is the least number of bytes of an answer that is encoded.
	MinEncoded int64
	// Caching is the Cache-Control field of values, and CachingOf that of the values of some dbs instead; empty means none.
	Caching   string
	CachingOf map[string]string
}

type delivery struct {
	Delivery
	all       bool            // origins has "*"
	origins   map[string]bool // nil if pages of no other origin may read answers
	caching   []byte
	cachingOf map[string][]byte
}

// SetDelivery changes how answers to later requests are delivered.
func (s *Server) SetDelivery(d Delivery) {
	c := &delivery{Delivery: d, cachingOf: make(map[string][]byte)}
	for _, origin := range d.Origins {
		if c.origins == nil {
			c.origins = make(map[string]bool)
		}
		c.origins[origin] = true
		c.all = c.all || origin == "*"
	}
	c.caching = s.cacheField(c, d.Caching)
	for db, own := range d.CachingOf {
		c.cachingOf[db] = s.cacheField(c, own)
	}
	s.delivery.Store(c)
}

// cacheField returns the field of the values of a db. Without one, browsers guess from Last-Modified for how long a value is fresh; so
// if pages may read values, they are to ask again, and get 304 while a value is the same.
func (s *Server) cacheField(d *delivery, field string) []byte {
	if field == "" && d.origins != nil {
		field = "no-cache"
	}
	if s.opts.Tokens != nil {
		field = privately(field)
	}
	return []byte(field)
}

// privately returns a Cache-Control field for an answer that needs a token: without the directives that let caches between
// the node and the client share it, and with private. An empty field stays empty.
func privately(field string) string {
	if field == "" {
		return ""
	}
	kept, restricted := []string{"private"}, false
	for directive := range strings.SplitSeq(field, ",") {
		directive = strings.TrimSpace(directive)
		name, _, _ := strings.Cut(directive, "=")
		switch strings.ToLower(name) {
		case "", "private", "public", "s-maxage", "proxy-revalidate":
			continue
		case "no-store":
			restricted = true
		}
		kept = append(kept, directive)
	}
	if restricted {
		kept = kept[1:]
	}
	return strings.Join(kept, ", ")
}

// addCaching adds the Cache-Control field of a value of the db.
func (r *request) addCaching() {
	if r.internal {
		return
	}
	field, ok := r.delivery.cachingOf[string(r.target.db)]
	if !ok {
		field = r.delivery.caching
	}
	if len(field) > 0 {
		r.cache = field
	}
}

// What an answer depends on, besides the target.
const (
	varyAccept = 1 << iota
	varyEncoding
	varyOrigin
	varySession
)

var varyFields = func() (fields [16][]byte) {
	for i := range fields {
		var names []string
		for bit, name := range []string{"Accept", "Accept-Encoding", "Origin", wire.AtLeast + ", " + wire.Version} {
			if i&(1<<bit) != 0 {
				names = append(names, name)
			}
		}
		fields[i] = []byte(strings.Join(names, ", "))
	}
	return fields
}()

var (
	noStore = []byte("no-store")
	private = []byte("private")
	noSniff = []byte("nosniff")
)

// addShared adds the fields that all answers have in common, and finds out what the answer varies by. It is called when all
// others are known. Answers to other nodes do not depend on what they accept or on an origin, and have the others, too: without
// a secret of the cluster, any client can ask as one.
func (r *request) addShared() {
	d := r.delivery
	if r.internal {
		r.vary = 0
	} else {
		if len(d.Codings) > 0 && r.code < 400 {
			r.vary |= varyEncoding
		}
		if len(r.Version) > 0 { // a cache must not answer a session from an older version than the session asks for
			r.vary |= varySession
		}
		if d.origins != nil {
			r.addOrigin(d)
		}
	}
	if r.cache == nil && r.grant != nil {
		r.cache = private
	}
	r.add("Cache-Control", r.cache)
	r.add("X-Content-Type-Options", noSniff)
	r.add("Vary", varyFields[r.vary])
}

// encodes reports whether a plain request may have its answer in a content coding, so that net/http answers it.
func (d *delivery) encodes(accepted []byte) bool {
	if len(d.Codings) == 0 || len(http1.Trim(accepted)) == 0 {
		return false
	}
	return negotiate.Coding(string(accepted), d.Codings...) != ""
}
