package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sequins/blocks"
	"sequins/version"
)

// file is a block that can be sent: a blocks.Reader.
type file interface {
	CopyTo(w io.Writer, wait func(bytes int) error) error
	Size() int64
}

var _ file = (*blocks.Reader)(nil)

// errSlow ends a copy whose other side is too slow.
var errSlow = errors.New("the other node is too slow")

// Serve answers a request of another node, which the caller has authorized, for a db with a query: what of a version is
// here, or a block. If code is not 200, it has written nothing, and text is the reason: 400 for a query that cannot be parsed, 404 for a
// partition that is not here, 409 for another plan, and 503 if too many blocks are being given. Code 0 means that the answer broke off,
// and that the connection has to be closed.
func (t *Transfer) Serve(w http.ResponseWriter, req *http.Request, db, query string) (code int, text string) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return http.StatusBadRequest, "the query cannot be parsed"
	}
	name, plan := values.Get("proxy"), req.Header.Get(PlanHeader)
	h := t.acquire(db, name, plan)
	if h != nil {
		defer h.Release()
	}
	if values.Has("blocks") {
		if h == nil && plan != "" {
			if h = t.acquire(db, name, ""); h != nil { // from other files, or by another plan
				defer h.Release()
			}
		}
		return t.serveState(w, db, name, h, values)
	}
	p, err := strconv.Atoi(values.Get("block"))
	if err != nil || p < 0 {
		return http.StatusBadRequest, "block must be the number of a partition"
	}
	return t.serveBlock(w, req, db, name, h, p)
}

// acquire returns a handle on a version by a plan, or by any plan if that is empty. "true" is the current version.
func (t *Transfer) acquire(db, name, plan string) *version.Handle {
	set := t.o.Set([]byte(db))
	switch {
	case set == nil:
		return nil
	case name == "true":
		return set.Acquire()
	}
	return set.AcquireVersion(name, plan)
}

// serveState answers with the State of a version.
func (t *Transfer) serveState(w http.ResponseWriter, db, name string, h *version.Handle, query url.Values) (int, string) {
	s := State{Given: t.given.Load()}
	if h != nil {
		s = State{Given: s.Given, Version: h.Version(), Plan: h.Plan()}
		for p, held := range h.Held() {
			if held {
				s.Held = append(s.Held, p)
			}
		}
		t.describe(&s, db, h.Revision(), query)
	}
	t.board.describe(key{db, name}, &s)
	if s.Plan != "" || s.Planning {
		s.Version = name
	}
	if h != nil {
		s.Version = h.Version()
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(s); err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	w.Header().Set("Content-Type", stateType)
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	_, _ = w.Write(b.Bytes()) // the server notices that the client has gone
	return http.StatusOK, ""
}

// describe adds what the store has of a version, if it was asked for.
func (t *Transfer) describe(s *State, db, id string, query url.Values) {
	manifest, inputs := query.Has("manifest"), query.Has("inputs")
	if t.o.Store == nil || !manifest && !inputs {
		return
	}
	dir, err := t.o.Store.Dir(db, id)
	if err != nil {
		return
	}
	if manifest {
		m := dir.Manifest()
		s.Manifest = &m
	}
	if inputs {
		s.Inputs = dir.Staging().Inputs()
	}
}

// serveBlock sends the file of a block.
func (t *Transfer) serveBlock(w http.ResponseWriter, req *http.Request, db, name string, h *version.Handle, p int) (int, string) {
	if h == nil {
		if other := t.acquire(db, name, ""); other != nil {
			other.Release()
			return http.StatusConflict, "version " + name + " of " + db + " is here from other files, or by another plan"
		}
		return http.StatusNotFound, "version " + name + " of " + db + " is not here"
	}
	b, ok := h.Block(p).(file)
	if held := h.Held(); !ok || p >= len(held) || !held[p] {
		return http.StatusNotFound, "the partition is not here"
	}
	if ok, _ := t.give.enter(); !ok || t.ending.Err() != nil {
		if ok {
			t.give.leave()
		}
		return http.StatusServiceUnavailable, "this node is giving as many blocks as it may: try again"
	}
	defer t.give.leave()
	defer t.o.Metrics.Stream("given")()
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(t.ending, cancel)()
	w.Header().Set("Content-Type", blockType)
	w.Header().Set("Content-Length", strconv.FormatInt(b.Size(), 10))
	w.Header().Set(PlanHeader, h.Plan())
	out := &sender{t: t, ctx: ctx, db: db, w: w, pulse: t.newPulse()}
	if err := b.CopyTo(out, out.wait); err != nil {
		if blocks.IsDamage(err) {
			h.Report(p, h.Block(p), err)
		}
		t.o.Logger.Warn("a block was not sent completely to another node", "db", db, "version", name, "partition", p, "peer", req.RemoteAddr,
			"error", err)
		if out.sent > 0 {
			return 0, err.Error()
		}
		for _, name := range []string{"Content-Type", "Content-Length", PlanHeader} {
			w.Header().Del(name)
		}
		return http.StatusServiceUnavailable, "the block cannot be read"
	}
	return http.StatusOK, ""
}

// A sender is the connection with a node that a block is sent to.
type sender struct {
	t   *Transfer
	ctx context.Context
	db  string
	w   http.ResponseWriter
	pulse
	sent int64
}

// wait waits until n bytes may be sent.
func (s *sender) wait(n int) error {
	if err := s.t.give.rate.WaitN(s.ctx, n); err != nil {
		return fmt.Errorf("cut off: %w", err)
	}
	return nil
}

// Write implements io.Writer.
func (s *sender) Write(p []byte) (int, error) {
	start := time.Now()
	_ = http.NewResponseController(s.w).SetWriteDeadline(start.Add(s.left)) // unsupported writers have limits of their own
	n, err := s.w.Write(p)
	s.sent += int64(n)
	s.t.given.Add(int64(n))
	s.t.o.Metrics.Given(s.db, n)
	if fast := s.add(n, time.Since(start)); err == nil && !fast {
		err = errSlow
	}
	return n, err
}
