package server

import (
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"sequins/internal/http1"
	"sequins/metrics"
	"sequins/version"
)

// database is what the server keeps of a db between requests.
type database struct {
	name   string
	counts *metrics.Keys
	heads  atomic.Pointer[heads]
}

// heads are the headers that all values of one version have, rendered once.
type heads struct {
	version      string
	configured   *func(string) string // that contentType is from
	listed       time.Time            // when it was modified, as the source lists it
	modified     time.Time            // the same in whole seconds
	versionValue []byte
	plan         []byte // what its blocks are loaded by
	lastModified []byte
	contentType  []byte

	// What stands in the answer to a plain request behind the date, the length and the
	// ETag of a value; nil where a header would have to be cleaned first.
	value, tag, rest []byte
}

// database finds a db that the catalogue has.
func (s *Server) database(name []byte) *database {
	if d := (*s.databases.Load())[string(name)]; d != nil {
		return d
	}
	return s.addDatabase(string(name))
}

// addDatabase makes a new table with one more db, and without those that are
// gone from the catalogue.
func (s *Server) addDatabase(name string) *database {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := *s.databases.Load()
	if d := old[name]; d != nil {
		return d
	}
	table := maps.Clone(old)
	for gone := range old {
		if s.catalog.Set([]byte(gone)) == nil {
			delete(table, gone)
			s.opts.Metrics.Forget(gone)
		}
	}
	d := &database{name: name, counts: s.opts.Metrics.DB(name)}
	table[name] = d
	s.databases.Store(&table)
	return d
}

// head returns the headers of a version. Only those of the version that was
// asked for last are kept: that is the current one, but for the moments after
// a change and for peers that are behind.
func (d *database) head(s *Server, h *version.Handle) *heads {
	configured := s.contentType.Load()
	if known := d.heads.Load(); known != nil && known.version == h.Version() && string(known.plan) == h.Plan() &&
		known.listed.Equal(h.LastModified()) && known.configured == configured {
		return known
	}
	fresh := &heads{
		version:      h.Version(),
		listed:       h.LastModified(), // a db that was removed and made again may have the same versions
		configured:   configured,
		versionValue: []byte(h.Version()),
		plan:         []byte(h.Plan()),
		contentType:  []byte((*configured)(d.name)),
	}
	if len(fresh.contentType) == 0 {
		fresh.contentType = []byte("application/octet-stream")
	}
	if t := h.LastModified(); !t.IsZero() {
		fresh.modified = t.UTC().Truncate(time.Second)
		fresh.lastModified = []byte(fresh.modified.Format(http.TimeFormat))
	}
	if !http1.HasControl(fresh.versionValue) && !http1.HasControl(fresh.contentType) {
		fresh.render()
	}
	d.heads.Store(fresh)
	return fresh
}

// render renders what plain requests are answered with, as fasthttp would.
func (h *heads) render() {
	h.value = fmt.Appendf(nil, "\r\nContent-Type: %s\r\nContent-Length: ", h.contentType)
	h.tag = fmt.Appendf(nil, "\r\nX-Sequins-Version: %s\r\nETag: ", h.versionValue)
	if len(h.lastModified) > 0 {
		h.rest = fmt.Appendf(nil, "\r\nLast-Modified: %s", h.lastModified)
	}
	h.rest = append(h.rest, "\r\nAccept-Ranges: bytes\r\n\r\n"...)
}

// dateCache renders the Date of an answer, once a second.
type dateCache struct{ now atomic.Pointer[second] }

type second struct {
	unix int64
	text []byte
}

func (d *dateCache) appendTo(b []byte, now time.Time) []byte {
	s := d.now.Load()
	if unix := now.Unix(); s == nil || s.unix != unix {
		s = &second{unix, []byte(now.UTC().Format(http.TimeFormat))}
		d.now.Store(s)
	}
	return append(b, s.text...)
}
