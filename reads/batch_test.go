package reads_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/internal/wire"
	"sequins/proxy"
	"sequins/reads"
	"sequins/shard"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// replicas says which peers hold each partition.
type replicas struct {
	version.Solo
	of [][]string
}

func (r replicas) Peers(p int) []string { return r.of[p] }

// held returns a set with one version of which some partitions are here.
func held(t testing.TB, name string, records map[string]string, of [][]string, here func(partition int) bool) *version.Set {
	t.Helper()
	v := version.New(version.Info{DB: "db", Content: contents.Of(name), Partitions: len(of), Partitioner: shard.String, Following: replicas{of: of}})
	versions.Put(t, v, records, here)
	set := version.NewSet("db")
	versions.Activate(t, set, v)
	return set
}

// mesh is the other nodes of a cluster, in this process. It is the Proxy of the node that is tested.
type mesh struct {
	t     *testing.T
	nodes map[string]*reads.Reader

	mu    sync.Mutex
	rnd   *rand.Rand
	wrong float64 // how often an answer is not what it should be
	asked int
	down  map[string]bool
}

// Fetch asks the peers one after the other, as the staged race does when each fails.
func (m *mesh) Fetch(_ context.Context, q *proxy.Query) (*proxy.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	absent := error(nil)
	for _, i := range m.rnd.Perm(len(q.Peers)) {
		addr := q.Peers[i]
		if m.down[addr] {
			continue
		}
		status, body := m.answer(addr, q)
		if status == http.StatusNotImplemented {
			absent = proxy.ErrAbsent
			continue
		}
		length := int64(len(body))
		if m.rnd.Float64() < m.wrong && len(body) > 0 {
			body, length = m.damage(body)
		}
		return &proxy.Answer{Peer: addr, Status: status, Length: length, Body: io.NopCloser(bytes.NewReader(body))}, nil
	}
	return nil, errors.Join(proxy.ErrNoPeers, absent)
}

// damage returns an answer that cannot be right: one that breaks off, or that is too long or too short.
func (m *mesh) damage(body []byte) ([]byte, int64) {
	switch m.rnd.IntN(3) {
	case 0:
		return body[:m.rnd.IntN(len(body))], int64(len(body))
	case 1:
		return append(slices.Clone(body), 0), int64(len(body)) + 1
	}
	return body[:len(body)-1], int64(len(body)) - 1
}

// answer is what a node answers, as bytes.
func (m *mesh) answer(addr string, q *proxy.Query) (int, []byte) {
	var keys [][]byte
	for b := q.Body; len(b) > 0; {
		n := binary.BigEndian.Uint32(b)
		keys, b = append(keys, b[4:4+n]), b[4+n:]
	}
	r := m.nodes[addr].NewRead()
	r.Begin(time.Now())
	defer r.Release()
	switch o := r.DoBatch(&reads.Query{DB: []byte("db"), Version: []byte(q.Version), Content: q.Content}, keys); o {
	case reads.Found:
	case reads.NotLocal, reads.NotHere:
		return http.StatusNotImplemented, nil
	default:
		m.t.Errorf("%s: outcome %d", addr, o)
		return http.StatusInternalServerError, nil
	}
	var body []byte
	for _, v := range r.Values {
		if v == nil {
			body = binary.BigEndian.AppendUint32(body, wire.Absent)
			continue
		}
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(v))), v...)
	}
	return http.StatusOK, body
}

// Batches of random keys over partitions that are here, elsewhere and nowhere have the values of a map, or no answer, also
// while other nodes break off.
func TestBatches(t *testing.T) {
	for seed := range uint64(15) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		records := map[string]string{}
		for i := range 300 {
			size := rnd.IntN(200)
			if i%50 == 0 {
				size = 70<<10 + rnd.IntN(100<<10)
			}
			records[fmt.Sprintf("key-%d", i)] = string(bytes.Repeat([]byte{byte(i)}, size))
		}
		names := []string{"a:1", "b:1", "c:1"}
		of, mine := make([][]string, 1+rnd.IntN(9)), make([]bool, 10)
		for p := range of {
			of[p] = slices.Clone(names)
			rnd.Shuffle(3, func(i, j int) { of[p][i], of[p][j] = of[p][j], of[p][i] })
			of[p], mine[p] = of[p][:rnd.IntN(3)+1], rnd.IntN(2) == 0
		}
		if seed%5 == 4 { // one partition is on no node
			of[0], mine[0] = nil, false
		}
		m := &mesh{t: t, nodes: map[string]*reads.Reader{}, rnd: rnd}
		if seed%3 == 2 {
			m.wrong = 0.3
		}
		quiet := slog.New(slog.DiscardHandler)
		for _, name := range names {
			set := held(t, "v1", records, of, func(p int) bool { return slices.Contains(of[p], name) })
			m.nodes[name] = reads.New(catalog{"db": set}, reads.Options{Logger: quiet})
		}
		set := held(t, "v1", records, of, func(p int) bool { return mine[p] })
		rd := reads.New(catalog{"db": set}, reads.Options{Proxy: m, Logger: quiet})
		r := rd.NewRead()
		for range 20 {
			checkBatch(t, &r, rnd, records, of, seed%5 == 4, m)
		}
	}
}

// checkBatch reads random keys and compares with the records.
func checkBatch(t *testing.T, r *reads.Read, rnd *rand.Rand, records map[string]string, of [][]string, missing bool, m *mesh) {
	t.Helper()
	keys := make([][]byte, rnd.IntN(200))
	lost := false
	for i := range keys {
		keys[i] = []byte(fmt.Sprintf("key-%d", rnd.IntN(400))) // a quarter is absent, some repeat
		lost = lost || missing && shard.String.Partition(keys[i], len(of)) == 0
	}
	r.Begin(time.Now())
	defer r.Release()
	m.asked = 0
	o := r.DoBatch(&reads.Query{DB: []byte("db")}, keys)
	switch {
	case lost && o == reads.Unreachable, m.wrong > 0 && o == reads.Unreachable:
		return
	case o != reads.Found || lost:
		t.Fatalf("outcome %d, with a lost partition: %v", o, lost)
	case string(r.Version) != "v1" || len(r.Values) != len(keys):
		t.Fatalf("%d values of version %s for %d keys", len(r.Values), r.Version, len(keys))
	case m.wrong == 0 && m.asked > 6: // the sets of one or two of three nodes
		t.Errorf("%d requests to three other nodes", m.asked)
	}
	for i, key := range keys {
		want, there := records[string(key)]
		if got := r.Values[i]; (got != nil) != there || string(got) != want {
			t.Fatalf("%s: %d bytes, there: %v; want %d bytes, there: %v", key, len(got), got != nil, len(want), there)
		}
	}
}

// The limits of a batch, and its reasons.
func TestBatchOutcomes(t *testing.T) {
	records := map[string]string{"a": string(make([]byte, 600)), "b": string(make([]byte, 600)), "large": string(make([]byte, 100<<10)), "": "empty key"}
	set := held(t, "v1", records, [][]string{nil}, func(int) bool { return true })
	empty := setOf(t, version.Info{DB: "empty", Content: contents.Of("v0")}, nil)
	rd := reads.New(catalog{"db": set, "empty": empty, "none": version.NewSet("none")}, reads.Options{MaxBatchBytes: 1000, Logger: slog.New(slog.DiscardHandler)})
	for _, test := range []struct {
		db   string
		keys []string
		want reads.Outcome
	}{
		{"db", []string{"a", "", "x"}, reads.Found},
		{"db", nil, reads.Found},
		{"db", []string{"a", "b"}, reads.TooLarge},
		{"db", []string{"large"}, reads.TooLarge},
		{"empty", []string{"a"}, reads.Found},
		{"none", []string{"a"}, reads.Unready},
		{"nodb", []string{"a"}, reads.NoDB},
	} {
		r := rd.NewRead()
		r.Begin(time.Now())
		keys := make([][]byte, len(test.keys))
		for i, k := range test.keys {
			keys[i] = []byte(k)
		}
		if got := r.DoBatch(&reads.Query{DB: []byte(test.db)}, keys); got != test.want || got == reads.Found && len(r.Values) != len(keys) {
			t.Errorf("%s %q: outcome %d, want %d", test.db, test.keys, got, test.want)
		}
		r.Release()
	}
}

// What batches reserve is bounded for each and for all together, and given back.
func TestReserve(t *testing.T) {
	rd := reads.New(catalog{}, reads.Options{MaxBatchBytes: 100})
	all := make([]reads.Read, 10)
	for i := range all {
		all[i] = rd.NewRead()
	}
	if o := all[0].Reserve(201); o != reads.TooLarge {
		t.Errorf("more than keys and values may have: outcome %d", o)
	}
	for i := range 4 {
		if o := all[i].Reserve(200); o != reads.Found {
			t.Errorf("request %d: outcome %d", i, o)
		}
	}
	if o := all[4].Reserve(1); o != reads.Busy {
		t.Errorf("beyond the budget: outcome %d", o)
	}
	all[0].Release()
	if o := all[4].Reserve(200); o != reads.Found {
		t.Errorf("after a release: outcome %d", o)
	}
}

// brokenBlock is a block whose last key cannot be read.
type brokenBlock struct{ *blocks.Reader }

func (b brokenBlock) GetBatch(keys [][]byte, results []blocks.Result, s *blocks.BatchScratch) {
	b.Reader.GetBatch(keys, results, s)
	results[len(results)-1] = blocks.Result{Err: fmt.Errorf("page 3: %w", blocks.ErrCorrupt)}
}

// The keys of a block that is damaged come from other nodes, or there is no answer; and the damage is reported.
func TestDamagedBatch(t *testing.T) {
	records, keys := numbered(200)
	of := [][]string{{"a:1"}, {"a:1"}}
	quiet := slog.New(slog.DiscardHandler)
	m := &mesh{t: t, nodes: map[string]*reads.Reader{}, rnd: rand.New(rand.NewPCG(1, 1))}
	m.nodes["a:1"] = reads.New(catalog{"db": held(t, "v1", records, of, func(int) bool { return true })}, reads.Options{Logger: quiet})
	mine := held(t, "v1", records, of, func(int) bool { return true })
	h := mine.Acquire()
	err := mine.EachBlock(func(_ *version.Handle, p int, b version.Block) error {
		if p == 1 {
			return mine.Version(contents.In("v1")).Put(1, brokenBlock{b.(*blocks.Reader)})
		}
		return nil
	})
	h.Release()
	expect.NoError(t, err)
	for _, test := range []struct {
		proxy reads.Proxy
		want  reads.Outcome
	}{{m, reads.Found}, {fails(proxy.ErrNoPeers), reads.Unreadable}, {nil, reads.Unreadable}} {
		rd := reads.New(catalog{"db": mine}, reads.Options{Proxy: test.proxy, Logger: quiet})
		r := rd.NewRead()
		r.Begin(time.Now())
		if got := r.DoBatch(&reads.Query{DB: []byte("db")}, keys); got != test.want {
			t.Errorf("outcome %d, want %d", got, test.want)
		}
		for i, key := range keys {
			if test.want == reads.Found && string(r.Values[i]) != records[string(key)] {
				t.Errorf("%s: %q", key, r.Values[i])
			}
		}
		r.Release()
	}
	select {
	case c := <-mine.Corruptions():
		if c.Partition != 1 {
			t.Errorf("reported: %+v", c)
		}
	default:
		t.Error("the damage was not reported")
	}
}

// numbered returns n records, and their keys.
func numbered(n int) (records map[string]string, keys [][]byte) {
	records = map[string]string{}
	for i := range n {
		key := fmt.Sprintf("key-%03d", i)
		records[key] = "value of " + key
		keys = append(keys, []byte(key))
	}
	return records, keys
}

// checkBatchElsewhere requests the keys of all records from the nodes of m, by a node that holds none. Nodes that do not answer are no failure of the
// request, and nothing is logged, while others do.
func checkBatchElsewhere(t *testing.T, m *mesh, of [][]string, records map[string]string, keys [][]byte) {
	t.Helper()
	var logged bytes.Buffer
	rd := reads.New(catalog{"db": held(t, "v1", records, of, func(int) bool { return false })},
		reads.Options{Proxy: m, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	r := rd.NewRead()
	r.Begin(time.Now())
	defer r.Release()
	if o := r.DoBatch(&reads.Query{DB: []byte("db")}, keys); o != reads.Found {
		t.Fatalf("outcome %d", o)
	}
	for i, key := range keys {
		if string(r.Values[i]) != records[string(key)] {
			t.Errorf("%s: %q", key, r.Values[i])
		}
	}
	if logged.Len() > 0 {
		t.Errorf("logged %s", &logged)
	}
}

// A node is asked for a batch if it is the only one that runs, whichever nodes hold the other partitions.
func TestBatchFallsBack(t *testing.T) {
	records, keys := numbered(100)
	of := [][]string{{"a:1", "b:1", "c:1"}, {"a:1", "b:1", "d:1"}, {"a:1", "b:1", "d:1"}}
	quiet := slog.New(slog.DiscardHandler)
	m := &mesh{t: t, nodes: map[string]*reads.Reader{}, rnd: rand.New(rand.NewPCG(1, 1)), down: map[string]bool{"a:1": true, "b:1": true}}
	for _, name := range []string{"c:1", "d:1"} {
		set := held(t, "v1", records, of, func(p int) bool { return slices.Contains(of[p], name) })
		m.nodes[name] = reads.New(catalog{"db": set}, reads.Options{Logger: quiet})
	}
	checkBatchElsewhere(t, m, of, records, keys)
}

// Nodes that have given up some partitions are still taken for their replicas, so that each of those asked for all of them
// refuses. Those that they hold are requested by themselves.
func TestBatchOfMovedPartitions(t *testing.T) {
	records, keys := numbered(100)
	of := make([][]string, 7)
	for p := range of {
		of[p] = []string{"a:1", "b:1"}
	}
	quiet := slog.New(slog.DiscardHandler)
	m := &mesh{t: t, nodes: map[string]*reads.Reader{}, rnd: rand.New(rand.NewPCG(1, 1))}
	for i, name := range of[0] {
		set := held(t, "v1", records, of, func(p int) bool { return p%2 == i })
		m.nodes[name] = reads.New(catalog{"db": set}, reads.Options{Logger: quiet})
	}
	checkBatchElsewhere(t, m, of, records, keys)
}

// What an answer that breaks off has brought does not count for the limit of the batch.
func TestBatchOfBrokenAnswer(t *testing.T) {
	value := bytes.Repeat([]byte("x"), 100<<10)
	var keys [][]byte
	var answer []byte
	for i := range 7 {
		keys = append(keys, fmt.Appendf(nil, "key-%d", i))
		answer = append(binary.BigEndian.AppendUint32(answer, uint32(len(value))), value...)
	}
	asked := 0
	rd := reads.New(catalog{"db": held(t, "v1", nil, [][]string{{"a:1", "b:1"}}, func(int) bool { return false })}, reads.Options{
		MaxBatchBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler),
		Proxy: proxyFunc(func(q *proxy.Query) (*proxy.Answer, error) {
			body := answer
			if asked++; asked == 1 {
				body = answer[:len(answer)-1]
			}
			return &proxy.Answer{Peer: q.Peers[0], Status: http.StatusOK, Length: int64(len(answer)), Body: io.NopCloser(bytes.NewReader(body))}, nil
		})})
	r := rd.NewRead()
	for range 3 {
		r.Begin(time.Now())
		if o := r.DoBatch(&reads.Query{DB: []byte("db")}, keys); o != reads.Found {
			t.Errorf("outcome %d", o)
		}
		r.Release()
	}
	if asked != 4 {
		t.Errorf("%d requests", asked)
	}
}

// A batch of local values holds little more memory than the values have.
func TestBatchMemory(t *testing.T) {
	for _, size := range []int{1 << 10, 60 << 10, 64<<10 + 1, 1 << 20} {
		value := strings.Repeat("x", size)
		records := map[string]string{}
		var keys [][]byte
		for i := range 20 {
			records[fmt.Sprintf("key-%02d", i)] = value
		}
		n := min(30<<20/size, 10000)
		for i := range n {
			keys = append(keys, fmt.Appendf(nil, "key-%02d", i%20))
		}
		rd := reads.New(catalog{"db": setOf(t, version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 1, Following: version.Solo{}}, records)}, reads.Options{})
		r := rd.NewRead()
		r.Begin(time.Now())
		before := heap()
		if o := r.DoBatch(&reads.Query{DB: []byte("db")}, keys); o != reads.Found {
			t.Fatalf("outcome %d", o)
		}
		if held := heap() - before; held > int64(n*size)*3/2+4<<20 {
			t.Errorf("%d values of %d bytes hold %d KiB", n, size, held>>10)
		}
		runtime.KeepAlive(r.Values)
		r.Release()
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
