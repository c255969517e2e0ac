package reads_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/proxy"
	"sequins/reads"
	"sequins/shard"
	"sequins/test/contents"
	"sequins/version"
	"sequins/version/report"
)

// scanMesh is the other nodes of a cluster, in this process, for ordered reads.
type scanMesh struct {
	t     *testing.T
	nodes map[string]*reads.Reader

	mu      sync.Mutex
	rnd     *rand.Rand
	down    map[string]bool
	wrong   float64               // how often an answer is not what it should be
	damage  func(b []byte) []byte // makes it so
	asked   int
	largest int
	before  func(asked int) // is called before each request is answered, without the lock
}

func (m *scanMesh) Fetch(ctx context.Context, q *proxy.Query) (*proxy.Answer, error) {
	m.mu.Lock()
	m.asked++
	n, before := m.asked, m.before
	m.mu.Unlock()
	if before != nil {
		before(n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	absent := error(nil)
	for _, i := range m.rnd.Perm(len(q.Peers)) {
		addr := q.Peers[i]
		if m.down[addr] || m.nodes[addr] == nil {
			continue
		}
		status, body := m.answer(ctx, addr, q)
		if status == http.StatusNotImplemented {
			absent = proxy.ErrAbsent
		}
		if status == http.StatusNotImplemented || status == http.StatusInternalServerError {
			continue
		}
		length := int64(len(body))
		if m.rnd.Float64() < m.wrong {
			body = m.damage(slices.Clone(body))
			length = int64(len(body))
		}
		m.largest = max(m.largest, len(body))
		return &proxy.Answer{Peer: addr, Status: status, Length: length, Body: io.NopCloser(bytes.NewReader(body))}, nil
	}
	return nil, errors.Join(proxy.ErrNoPeers, absent)
}

func (m *scanMesh) answer(ctx context.Context, addr string, q *proxy.Query) (int, []byte) {
	text, ok := bytes.CutPrefix(q.Params, []byte("page="))
	p, err := reads.ParsePageRequest(text)
	if !ok || err != nil {
		m.t.Errorf("a request with %q: %v", q.Params, err)
		return http.StatusBadRequest, nil
	}
	r := m.nodes[addr].NewRead()
	r.Begin(time.Now())
	defer r.Release()
	rq := &reads.Query{DB: []byte("db"), Version: []byte(q.Version), Content: q.Content}
	var body []byte
	var o reads.Outcome
	if key, ok := p.Key(); ok {
		rq.Key = key
		if o = r.Do(rq); o == reads.Found {
			if body, err = io.ReadAll(r.Body()); err != nil {
				o = reads.Unreadable
			}
		}
	} else {
		body, o = r.Page(ctx, rq, p)
	}
	switch o {
	case reads.Found:
		return http.StatusOK, slices.Clone(body)
	case reads.NotLocal, reads.NotHere, reads.Busy:
		return http.StatusNotImplemented, nil
	case reads.Unreadable:
		return http.StatusInternalServerError, nil
	}
	m.t.Errorf("%s: outcome %d", addr, o)
	return http.StatusInternalServerError, nil
}

// record is what a scan gives.
type record struct{ key, value string }

// collectScan reads a range to its end or to the first error.
func collectScan(t *testing.T, r *reads.Read, q *reads.Query, g *reads.Range) (all []record, cursor []byte, o reads.Outcome) {
	t.Helper()
	r.Begin(time.Now())
	defer r.Release()
	s, o := r.Scan(context.Background(), q, g)
	if o != reads.Found {
		return nil, nil, o
	}
	for s.Next() {
		value := string(s.Value())
		if s.Large() {
			body := s.Open()
			b, err := io.ReadAll(body)
			if err != nil {
				return all, nil, s.Outcome()
			}
			body.Close()
			value = string(b)
		}
		if int64(len(value)) != s.Length() {
			t.Fatalf("%q: %d bytes of %d", s.Key(), len(value), s.Length())
		}
		all = append(all, record{string(s.Key()), value})
	}
	return all, bytes.Clone(s.Cursor()), s.Outcome()
}

// scanModel is what a range has, from the records in a map.
func scanModel(records map[string]string, g *reads.Range) (all []record) {
	for _, k := range slices.Sorted(maps.Keys(records)) {
		if strings.HasPrefix(k, string(g.Prefix)) && k >= string(g.Start) && (len(g.End) == 0 || k < string(g.End)) {
			value := records[k]
			if g.KeysOnly {
				value = ""
			}
			all = append(all, record{k, value})
		}
	}
	return all
}

// oddKey returns a short key of few letters, so that keys are prefixes of each other, or one like those of tables.
func oddKey(rnd *rand.Rand) string {
	if rnd.IntN(3) == 0 {
		return fmt.Sprintf("user:%06d", rnd.IntN(1000))
	}
	b := make([]byte, rnd.IntN(12))
	for i := range b {
		b[i] = []byte{0, 'a', 'b', 0xff}[rnd.IntN(4)]
	}
	return string(b)
}

func oddRecords(rnd *rand.Rand, n int) map[string]string {
	records := map[string]string{}
	for i := range n {
		size := rnd.IntN(200)
		if i%100 == 7 {
			size = 60<<10 + rnd.IntN(100<<10)
		}
		records[oddKey(rnd)] = string(bytes.Repeat([]byte{byte(i)}, size))
	}
	return records
}

func randomRange(rnd *rand.Rand) *reads.Range {
	g := &reads.Range{KeysOnly: rnd.IntN(3) == 0}
	if rnd.IntN(2) == 0 {
		g.Start = []byte(oddKey(rnd))
	}
	if rnd.IntN(2) == 0 {
		g.End = []byte(oddKey(rnd))
	}
	if rnd.IntN(2) == 0 {
		k := oddKey(rnd)
		g.Prefix = []byte(k[:rnd.IntN(min(len(k), 3)+1)])
	}
	return g
}

// world is a cluster: a node that is asked, and others.
type world struct {
	*scanMesh
	records map[string]string
	of      [][]string // which other nodes have each partition
	mine    []bool
	set     *version.Set
	rd      *reads.Reader
}

var quiet = slog.New(slog.DiscardHandler)

func newWorld(t *testing.T, seed uint64, partitions, n int) *world {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 3))
	w := &world{scanMesh: &scanMesh{t: t, nodes: map[string]*reads.Reader{}, rnd: rnd, down: map[string]bool{}}, records: oddRecords(rnd, n)}
	names := []string{"a:1", "b:1", "c:1"}
	w.of, w.mine = make([][]string, partitions), make([]bool, partitions)
	for p := range w.of {
		all := slices.Clone(names)
		rnd.Shuffle(3, func(i, j int) { all[i], all[j] = all[j], all[i] })
		w.of[p], w.mine[p] = all[:2+int(seed%2)], rnd.IntN(2) == 0
	}
	for _, name := range names {
		set := held(t, "v1", w.records, w.of, func(p int) bool { return slices.Contains(w.of[p], name) })
		w.nodes[name] = reads.New(catalog{"db": set}, reads.Options{Logger: quiet})
	}
	w.set = held(t, "v1", w.records, w.of, func(p int) bool { return w.mine[p] })
	w.rd = reads.New(catalog{"db": w.set}, reads.Options{Proxy: w, Logger: quiet})
	return w
}

func sameRecords(t *testing.T, got, want []record, what string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: record %d is %.60q (%d bytes), want %.60q (%d bytes)", what, i, got[i].key, len(got[i].value), want[i].key, len(want[i].value))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, want %d", what, len(got), len(want))
	}
}

// Random ranges over partitions that are here and elsewhere have the records of a sorted map, whole and in pieces of
// random size that go on from their cursors, on this node and on others.
func TestScan(t *testing.T) {
	for seed := range uint64(8) {
		w := newWorld(t, seed, 1+2*int(seed), 1000)
		r := w.rd.NewRead()
		for range 10 {
			g := randomRange(w.rnd)
			want := scanModel(w.records, g)
			what := fmt.Sprintf("seed %d, prefix %q, start %q, end %q", seed, g.Prefix, g.Start, g.End)
			got, cursor, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, g)
			if o != reads.Found || cursor != nil {
				t.Fatalf("%s: outcome %d, cursor %q", what, o, cursor)
			}
			sameRecords(t, got, want, what)
			n, o := countOf(t, &r, g)
			if o != reads.Found || n != int64(len(want)) {
				t.Fatalf("%s: counted %d, outcome %d, want %d", what, n, o, len(want))
			}
			inPieces(t, w, &r, g, want)
		}
	}
}

func countOf(t *testing.T, r *reads.Read, g *reads.Range) (int64, reads.Outcome) {
	t.Helper()
	r.Begin(time.Now())
	defer r.Release()
	return r.Count(context.Background(), &reads.Query{DB: []byte("db")}, g)
}

// inPieces reads a range with limits. The first request has the whole range; later ones have parts of it, as the cursor has
// the rest.
func inPieces(t *testing.T, w *world, r *reads.Read, g *reads.Range, want []record) {
	t.Helper()
	var all []record
	for {
		some := *g
		some.Limit = int64(1 + w.rnd.IntN(1+len(want)))
		if g.After != nil && w.rnd.IntN(2) == 0 {
			some.Prefix, some.Start, some.End = nil, nil, nil
		}
		got, cursor, o := collectScan(t, r, &reads.Query{DB: []byte("db")}, &some)
		if o != reads.Found || int64(len(got)) > some.Limit {
			t.Fatalf("outcome %d, %d records of %d", o, len(got), some.Limit)
		}
		all = append(all, got...)
		if cursor == nil {
			break
		}
		if int64(len(got)) != some.Limit {
			t.Fatalf("a cursor after %d records of %d", len(got), some.Limit)
		}
		g.After = cursor
	}
	g.After = nil
	sameRecords(t, all, want, "in pieces")
}

// A scan of many pages survives that nodes are down in the middle, as long as each partition has one, and that answers are
// damaged.
func TestScanWhileNodesFail(t *testing.T) {
	for seed := range uint64(6) {
		w := newWorld(t, seed, 8, 20_000)
		names := slices.Sorted(maps.Keys(w.nodes))
		w.before = func(asked int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			clear(w.down)
			w.down[names[asked%3]] = true
			if seed%2 == 1 { // each partition has three
				w.down[names[asked/3%3]] = true
			}
		}
		if seed%3 == 2 {
			w.wrong, w.damage = 0.2, func(b []byte) []byte { return b[:len(b)-1-w.rnd.IntN(len(b))] }
			w.before = nil
		}
		r := w.rd.NewRead()
		g := &reads.Range{}
		got, _, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, g)
		if o == reads.Unreachable && w.wrong > 0 { // both nodes of a partition were wrong
			continue
		}
		if o != reads.Found {
			t.Fatalf("seed %d: outcome %d after %d records", seed, o, len(got))
		}
		want := scanModel(w.records, g)
		sameRecords(t, got, want, "with failures")
		middle := &reads.Range{Start: []byte(want[len(want)/4].key)}
		if n, o := countOf(t, &r, middle); (o != reads.Unreachable || w.wrong == 0) && (o != reads.Found || n != int64(len(want)-len(want)/4)) {
			t.Errorf("seed %d: counted %d with failures, outcome %d", seed, n, o)
		}
		if w.largest > 1<<20+200<<10 {
			t.Errorf("a page of %d bytes", w.largest)
		}
	}
}

// Partitions are requested together from the nodes that they have in common; if none of those answers, each is requested
// from its others.
func TestScanOfOtherNodes(t *testing.T) {
	w := newWorld(t, 1, 4, 2000)
	for p := range w.of {
		w.mine[p] = false
		w.of[p] = []string{"a:1", "b:1", []string{"c:1", "d:1"}[p%2]}
	}
	set := held(t, "v1", w.records, w.of, func(p int) bool { return slices.Contains(w.of[p], "d:1") })
	w.nodes["d:1"] = reads.New(catalog{"db": set}, reads.Options{Logger: quiet})
	mine := held(t, "v1", w.records, w.of, func(int) bool { return false })
	w.rd = reads.New(catalog{"db": mine}, reads.Options{Proxy: w, Logger: quiet})
	w.down["a:1"], w.down["b:1"] = true, true
	r := w.rd.NewRead()
	g := &reads.Range{}
	want := scanModel(w.records, g)
	got, _, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, g)
	if o != reads.Found {
		t.Fatalf("outcome %d after %d records", o, len(got))
	}
	sameRecords(t, got, want, "from the others")
	for _, g := range []*reads.Range{{}, {Start: []byte("a")}} {
		if n, o := countOf(t, &r, g); o != reads.Found || n != int64(len(scanModel(w.records, g))) {
			t.Errorf("counted %d, outcome %d", n, o)
		}
	}
	w.down["c:1"] = true
	if got, _, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, g); o != reads.Unreachable || len(got) > 0 {
		t.Errorf("outcome %d after %d records", o, len(got))
	}
}

// reporting is a following whose other node reports two partitions, and whose nodes do not answer.
type reporting struct{ replicas }

func (reporting) Reports() (map[string]report.Report, bool) {
	return map[string]report.Report{"a:1": {Blocks: map[int]report.Figures{1: {Records: 30}, 2: {Records: 4}}}}, true
}

// What is counted as a whole on other nodes is what they have reported.
func TestCountByReports(t *testing.T) {
	nobody := reporting{replicas{of: make([][]string, 3)}}
	set := setOf(t, version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 3, Partitioner: shard.String, Following: nobody}, map[string]string{"k": "value"})
	rd := reads.New(catalog{"db": set}, reads.Options{Proxy: &scanMesh{t: t}, Logger: slog.New(slog.DiscardHandler)})
	defer rd.Stop()
	r := rd.NewRead()
	if n, o := countOf(t, &r, &reads.Range{}); o != reads.Found || n != 35 {
		t.Errorf("counted %d, outcome %d", n, o)
	}
	if _, o := countOf(t, &r, &reads.Range{Prefix: []byte("k")}); o != reads.Unreachable {
		t.Errorf("a range: outcome %d", o)
	}
}
