package transfer

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/internal/wire"
)

// errSlow ends a copy whose other side is too slow.
var errSlow = errors.New("the other node is too slow")

// Serve answers a request of another node, which the caller has authorized, for a db with a query: the manifest
// of a content, or a block. If code is not 200, it has written nothing, and text is the reason: 400 for a request that cannot be parsed, 404 for what
// is not here, 429 if as many blocks are given as may be, and 503 after Close. Code 0 means that the answer broke off, and that the connection has
// to be closed.
func (t *Transfer) Serve(w http.ResponseWriter, req *http.Request, db, query string) (code int, text string) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return http.StatusBadRequest, "the query cannot be parsed"
	}
	c, err := content.Parse(values.Get("proxy"), req.Header.Get(wire.Content))
	if err != nil {
		return http.StatusBadRequest, wire.Content + ": " + err.Error()
	}
	if values.Has("blocks") {
		if dir, err := t.o.Store.Dir(db, c.Input); err == nil && dir.Manifest().Content() == c {
			return answer(w, manifestType, c.Code(), dir.Manifest())
		}
		return http.StatusNotFound, "the content is not here"
	}
	p, err := strconv.Atoi(values.Get("block"))
	if err != nil || p < 0 {
		return http.StatusBadRequest, "block must be the number of a partition"
	}
	set := t.o.Set([]byte(db))
	if set == nil {
		return http.StatusNotFound, "the content is not here"
	}
	h := set.AcquireVersion(c.Name, c.Code())
	if h == nil {
		return http.StatusNotFound, "the content is not here"
	}
	defer h.Release()
	b, ok := h.Block(p).(*blocks.Reader)
	if held := h.Held(); !ok || p >= len(held) || !held[p] {
		return http.StatusNotFound, "the partition is not here"
	}
	if t.ending.Err() != nil {
		return http.StatusServiceUnavailable, "this node is stopping"
	}
	if !t.places.TryAcquire(1) {
		return http.StatusTooManyRequests, "this node is giving as many blocks as it may: try again"
	}
	defer t.places.Release(1)
	t.o.Metrics.Streams.Add(1, "given")
	defer t.o.Metrics.Streams.Add(-1, "given")
	w.Header().Set("Content-Type", blockType)
	w.Header().Set("Content-Length", strconv.FormatInt(b.Size(), 10))
	w.Header().Set(wire.Content, h.Content.Code())
	out := &sender{t: t, db: db, w: w, pulse: t.newPulse(t.give)}
	if err := b.CopyTo(out, func(n int) error { return t.give.WaitN(t.ending, n) }); err != nil {
		if blocks.IsDamage(err) {
			h.Report(p, h.Block(p), err)
		}
		t.o.Logger.Warn("a block was not sent completely to another node", "db", db, "version", h.Name, "partition", p, "peer", req.RemoteAddr,
			"error", err)
		return 0, err.Error()
	}
	return http.StatusOK, ""
}

// answer sends JSON to another node. code is that of the content that it is about, "" for none.
func answer(w http.ResponseWriter, mediaType, code string, v any) (int, string) {
	data, err := json.Marshal(v)
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if code != "" {
		w.Header().Set(wire.Content, code)
	}
	_, _ = w.Write(data) // the server notices that the client has gone
	return http.StatusOK, ""
}

// A sender is the connection with a node that a block is sent to.
type sender struct {
	t  *Transfer
	db string
	w  http.ResponseWriter
	pulse
}

// Write implements io.Writer. The server ends a write of which nothing is taken.
func (s *sender) Write(p []byte) (int, error) {
	start := time.Now()
	n, err := s.w.Write(p)
	s.t.o.Metrics.Given.Add(float64(n), s.db)
	if fast := s.add(n, time.Since(start)); err == nil && !fast {
		err = errSlow
	}
	return n, err
}
