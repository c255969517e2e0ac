package reads

import (
	"maps"
	"net/http"
	"sync/atomic"

	"sequins/internal/http1"
	"sequins/internal/wire"
	"sequins/observe/metrics"
	"sequins/version"
)

// database is the state that a Reader keeps for a db between requests.
type database struct {
	name   string
	counts *metrics.Keys
	labels atomic.Pointer[labels]
}

// labels are the header values that all values of one version share, rendered once.
type labels struct {
	version      []byte
	content      []byte               // its code
	id           uint64               // of the handle
	configured   *func(string) string // the function that returned contentType
	lastModified []byte               // as an HTTP date; nil if unknown
	contentType  []byte
}

// database returns the state of a db that is in the catalog.
func (rd *Reader) database(name []byte) *database {
	if d := (*rd.databases.Load())[string(name)]; d != nil {
		return d
	}
	return rd.addDatabase(string(name))
}

// addDatabase adds a db to the table, and removes those that have left the catalog.
func (rd *Reader) addDatabase(name string) *database {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	old := *rd.databases.Load()
	if d := old[name]; d != nil {
		return d
	}
	table := maps.Clone(old)
	for gone := range old {
		if rd.catalog.Set([]byte(gone)) == nil {
			delete(table, gone)
			rd.opts.Metrics.Forget(gone)
		}
	}
	d := &database{name: name, counts: rd.opts.Metrics.DB(name)}
	table[name] = d
	rd.databases.Store(&table)
	return d
}

// labelsOf returns the labels of a version. Only the labels last used are kept: nearly always those of the
// current version, except right after a switch and for peers that still use the previous one.
func (d *database) labelsOf(rd *Reader, h *version.Handle) *labels {
	configured := rd.contentType.Load()
	if known := d.labels.Load(); known != nil && known.id == h.ID() && known.configured == configured {
		return known
	}
	fresh := &labels{
		version:     []byte(h.Name),
		content:     []byte(h.Code()),
		id:          h.ID(),
		configured:  configured,
		contentType: []byte((*configured)(d.name)),
	}
	if len(fresh.contentType) == 0 || http1.HasControl(fresh.contentType) {
		fresh.contentType = []byte(wire.Bytes)
	}
	if listed := h.LastModified; !listed.IsZero() {
		fresh.lastModified = []byte(listed.UTC().Format(http.TimeFormat))
	}
	d.labels.Store(fresh)
	return fresh
}
