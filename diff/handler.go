package diff

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sequins/internal/names"
	"sequins/status"
	"sequins/version"
)

// Handler answers GET /<db>?diff=OLD..NEW. The caller has checked that the client may read the database.
type Handler struct {
	set        func(db []byte) *version.Set
	others     *peers
	own, peers chan struct{} // slots for requests of clients, and of nodes
}

// Options are the settings of a Handler.
type Options struct {
	// Set returns the versions of a db, nil if there is no such db.
	Set func(db []byte) *version.Set
	// Peers returns the other nodes; nil on a single node. TLS enables TLS to them, and Secret is the secret of the
	// cluster, or "".
	Peers  func() []status.Peer
	TLS    *tls.Config
	Secret string
}

// New returns a handler that compares for one client, and for two other nodes, at a time. The caller must close it.
func New(o Options) *Handler {
	return &Handler{set: o.Set, others: newPeers(o), own: make(chan struct{}, 1), peers: make(chan struct{}, 2)}
}

// Close closes idle connections with other nodes.
func (h *Handler) Close() { h.others.client.CloseIdleConnections() }

// question is a parsed request.
type question struct {
	db, old, new string
	contents     [2]string // of old and new, in a request of another node: see content.Content.Code
	list         bool      // every key that differs
	partitions   []int     // of a request of another node; nil for all
	peer         bool
	keys         string // old or new: another node wants the keys of a partition; see writeKeys
}

// maxPartitions limits the partitions that a node is asked for in one request.
const maxPartitions = 1000

// parse parses a query, of another node or of a client.
func parse(db, query string, node bool) (q question, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return q, errors.New("the query cannot be parsed")
	}
	old, now, ok := strings.Cut(names.FromQuery(values.Get("diff")), "..")
	if !ok || !names.Valid(old) || !names.Valid(now) {
		return q, errors.New("diff must be two names of versions, as in ?diff=2026-01-30..2026-01-31")
	}
	q = question{db: db, old: old, new: now, list: values.Has("list"), peer: node, keys: values.Get("keys")}
	if !q.peer {
		if values.Has("of") || values.Has("keys") || values.Has("contents") {
			return q, errors.New("of, keys and contents are for the nodes of this cluster")
		}
		return q, nil
	}
	q.contents[0], q.contents[1], _ = strings.Cut(values.Get("contents"), "..")
	q.partitions = []int{}
	for text := range strings.SplitSeq(values.Get("of"), ",") {
		p, err := strconv.Atoi(text)
		if err != nil || p < -1 || len(q.partitions) == maxPartitions || slices.Contains(q.partitions, p) {
			return q, errors.New("of must be different numbers of partitions, at most 1,000")
		}
		q.partitions = append(q.partitions, p)
	}
	if q.keys != "" && (q.keys != "old" && q.keys != "new" || len(q.partitions) != 1) {
		return q, errors.New("keys must be old or new, of one partition")
	}
	return q, nil
}

// refusal is an answer other than 200.
type refusal struct {
	code int
	text string
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// Serve answers a request for a db with a query. node reports whether another node has sent it, which the caller decides, and lines whether the
// answer is lines of JSON.
func (h *Handler) Serve(ctx context.Context, w http.ResponseWriter, db, query string, node, lines bool) (code int, text string) {
	err := h.serve(ctx, w, db, query, node, lines)
	var r *refusal
	switch {
	case err == nil:
		return http.StatusOK, ""
	case errors.As(err, &r):
		return r.code, r.text
	}
	return http.StatusInternalServerError, err.Error()
}

func (h *Handler) serve(ctx context.Context, w http.ResponseWriter, db, query string, node, lines bool) error {
	q, err := parse(db, query, node)
	if err != nil {
		return &refusal{http.StatusBadRequest, err.Error()}
	}
	slots := h.own
	if q.peer {
		slots = h.peers
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	default:
		return &refusal{http.StatusServiceUnavailable, "this node is comparing versions already: try again later"}
	}
	c, err := h.open(q)
	if err != nil {
		return err
	}
	defer c.close()
	if q.peer && q.keys != "" {
		return c.sendKeys(ctx, w)
	}
	out := &answer{w: w, lines: lines || q.list || q.peer, list: q.list}
	if err := c.run(ctx, h.others, out); err != nil {
		return out.fail(err)
	}
	return out.finish(c.report)
}

// comparison is a running comparison.
type comparison struct {
	question
	before, after *version.Handle
	report        *Report
	left          []int // partitions that are not compared yet
	of            int
}

// open acquires both versions.
func (h *Handler) open(q question) (*comparison, error) {
	set := h.set([]byte(q.db))
	if set == nil {
		return nil, &refusal{http.StatusNotFound, "there is no database " + q.db}
	}
	c := &comparison{question: q, report: &Report{DB: q.db, Old: q.old, New: q.new, Partitions: []Row{}}}
	c.before, c.after = set.AcquireVersion(q.old, q.contents[0]), set.AcquireVersion(q.new, q.contents[1])
	for i, h := range []*version.Handle{c.before, c.after} {
		if h == nil {
			c.close()
			return nil, &refusal{http.StatusNotFound, fmt.Sprintf("version %s of %s is not on this node", []string{q.old, q.new}[i], q.db)}
		}
	}
	c.left = q.partitions
	if !q.peer {
		c.left = c.all()
	}
	c.of = len(c.left)
	return c, nil
}

func (c *comparison) close() {
	for _, h := range []*version.Handle{c.before, c.after} {
		if h != nil {
			h.Release()
		}
	}
}

// sendKeys answers a node that has only one of two blocks.
func (c *comparison) sendKeys(ctx context.Context, w http.ResponseWriter) error {
	h := c.before
	if c.keys == "new" {
		h = c.after
	}
	err := writeKeys(ctx, w, h, c.partitions[0])
	switch {
	case errors.Is(err, version.ErrNotLocal):
		return &refusal{http.StatusNotFound, "the partition is not on this node"}
	case errors.Is(err, errBroken):
		return nil // the answer has no end
	}
	return err
}

// aligned reports whether both versions put each key into the same partition.
func (c *comparison) aligned() bool {
	return c.before.Partitions() == c.after.Partitions() && c.before.Partitioner() == c.after.Partitioner()
}

// all returns the partitions to compare.
func (c *comparison) all() []int {
	if !c.aligned() {
		return []int{-1}
	}
	all := make([]int, c.before.Partitions())
	for p := range all {
		all[p] = p
	}
	return all
}

// run compares what is here, and asks the others for the rest.
func (c *comparison) run(ctx context.Context, others *peers, out *answer) error {
	var left []int
	for _, p := range c.left {
		row, err := c.compare(ctx, p, out)
		switch {
		case errors.Is(err, version.ErrNotLocal):
			left = append(left, p)
		case err != nil:
			return err
		default:
			if err := c.done(row, out); err != nil {
				return err
			}
		}
	}
	if c.left = left; !c.peer && len(left) > 0 {
		if err := others.compare(ctx, c, out); err != nil {
			return err
		}
	}
	c.report.Unknown = c.left
	slices.SortFunc(c.report.Partitions, func(a, b Row) int { return a.Partition - b.Partition })
	return nil
}

// compare compares one partition, or the versions as a whole.
func (c *comparison) compare(ctx context.Context, p int, out *answer) (Row, error) {
	var each emit
	if c.list {
		each = out.difference
	}
	switch {
	case p < 0 && !c.aligned():
		return compareWhole(ctx, c.before, c.after, each)
	case p < 0 || !c.aligned():
		return Row{}, version.ErrNotLocal
	}
	return comparePartition(ctx, c.before, c.after, p, each)
}

// done adds a partition that is compared.
func (c *comparison) done(row Row, out *answer) error {
	c.report.add(row)
	if c.peer {
		return out.send(line{Row: &row})
	}
	return out.progress(Progress{c.report.Compared, c.of})
}

// answer writes an answer. Its first byte decides about the status.
type answer struct {
	w           http.ResponseWriter
	lines, list bool
	begun       bool
	told        time.Time
}

// progressPeriod is the interval of lines of progress.
const progressPeriod = 500 * time.Millisecond

func (a *answer) progress(p Progress) error {
	if !a.lines || time.Since(a.told) < progressPeriod {
		return nil
	}
	a.told = time.Now()
	return a.send(line{Progress: &p})
}

func (a *answer) difference(op Op, key []byte) error {
	return a.send(line{Difference: &Difference{op, key}})
}

// send sends a line.
func (a *answer) send(l line) error {
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", "application/x-ndjson")
	}
	data, err := json.Marshal(l)
	if err == nil {
		_, err = a.w.Write(append(data, '\n'))
	}
	return err
}

// fail ends an answer with an error: as a line if there are some already.
func (a *answer) fail(err error) error {
	if !a.begun {
		return err
	}
	return a.send(line{Error: err.Error()})
}

// finish sends the result.
func (a *answer) finish(r *Report) error {
	if a.lines {
		return a.send(line{Report: r})
	}
	a.w.Header().Set("Content-Type", "application/json")
	data, err := json.Marshal(r)
	if err == nil {
		_, err = a.w.Write(append(data, '\n'))
	}
	return err
}
