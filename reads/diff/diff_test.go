package diff

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/proxy"
	"sequins/reads"
	"sequins/shard"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
	"sequins/version/report"
)

// addVersion adds a version with the records of a map to a set, of which a node holds some partitions.
func addVersion(t *testing.T, set *version.Set, name string, partitions int, records map[string]string, held func(p int) bool) {
	t.Helper()
	addContent(t, set, contents.Of(name), version.Solo{}, partitions, records, held)
}

func addContent(t *testing.T, set *version.Set, c content.Content, f version.Following, partitions int, records map[string]string, held func(p int) bool) {
	t.Helper()
	v := version.New(version.Info{DB: "db", Content: c, Partitions: partitions, Partitioner: shard.String, Following: f})
	versions.Put(t, v, records, held)
	set.Prepare(v)
	t.Cleanup(func() { versions.Close(t, set, c.Input) })
}

// catalog has one db.
type catalog struct{ set *version.Set }

func (c catalog) Set(db []byte) *version.Set {
	if string(db) == "db" {
		return c.set
	}
	return nil
}

func (catalog) MayExist([]byte) bool { return false }

// mesh is the other nodes of a cluster, by address, in this process. It answers as they do.
type mesh struct {
	t     *testing.T
	nodes map[string]*reads.Reader
	spoil func(answer []byte) []byte // nil changes nothing
}

func (m *mesh) Fetch(ctx context.Context, q *proxy.Query) (*proxy.Answer, error) {
	for _, addr := range q.Peers {
		rd := m.nodes[addr]
		if rd == nil {
			continue
		}
		page, err := reads.ParsePageRequest(bytes.TrimPrefix(q.Params, []byte("page=")))
		if err != nil {
			m.t.Errorf("a request with %q: %v", q.Params, err)
			continue
		}
		asked := &reads.Query{DB: []byte("db"), Version: []byte(q.Version), Content: q.Content}
		body, o := answerPeer(ctx, rd, asked, page)
		if o != reads.Found {
			continue
		}
		if m.spoil != nil {
			body = m.spoil(body)
		}
		return &proxy.Answer{Peer: addr, Status: 200, Length: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}, nil
	}
	return nil, proxy.ErrNoPeers
}

// answerPeer answers a request of another node.
func answerPeer(ctx context.Context, rd *reads.Reader, q *reads.Query, page *reads.PageRequest) ([]byte, reads.Outcome) {
	r := rd.NewRead()
	r.Begin(time.Now())
	defer r.Release()
	key, isValue := page.Key()
	if !isValue {
		body, o := r.Page(ctx, q, page)
		return slices.Clone(body), o
	}
	q.Key = key
	if o := r.Do(q); o != reads.Found {
		return nil, o
	}
	body, err := io.ReadAll(r.Body())
	if err != nil {
		return nil, reads.Unreadable
	}
	return body, reads.Found
}

// node returns a server with a handler for a set. p may be nil.
func node(t *testing.T, set *version.Set, p reads.Proxy) (addr string) {
	rd := reader(t, set, p)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines := r.Header.Get("Accept") == "application/x-ndjson"
		if code, text := New(rd).Serve(r.Context(), w, strings.Trim(r.URL.Path, "/"), r.URL.RawQuery, lines); code != 200 {
			http.Error(w, text, code)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func reader(t *testing.T, set *version.Set, p reads.Proxy) *reads.Reader {
	rd := reads.New(catalog{set}, reads.Options{Proxy: p, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(rd.Stop)
	return rd
}

// following is what a node knows of a version on others: who advertises and who reports each partition.
type following struct {
	version.Solo
	advertised, reported func(p int) []string
	partitions           int
}

func (f following) Peers(p int) []string {
	if f.advertised == nil {
		return nil
	}
	return f.advertised(p)
}

func (f following) Reports() (map[string]report.Report, bool) {
	all := map[string]report.Report{}
	for p := range f.partitions {
		if f.reported == nil {
			break
		}
		for _, addr := range f.reported(p) {
			if all[addr].Blocks == nil {
				all[addr] = report.Report{Blocks: make(map[int]report.Figures)}
			}
			all[addr].Blocks[p] = report.Figures{}
		}
	}
	return all, true
}

// ask requests lines.
func ask(t *testing.T, addr, query string) (*Report, map[string]Op, error) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+addr+"/db?"+query, nil)
	expect.NoError(t, err)
	req.Header.Set("Accept", "application/x-ndjson")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	expect.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		var b bytes.Buffer
		b.ReadFrom(resp.Body)
		return nil, nil, fmt.Errorf("%d: %s", resp.StatusCode, strings.TrimSpace(b.String()))
	}
	found := map[string]Op{}
	r, err := Read(resp.Body, func(d Difference) error {
		if _, twice := found[string(d.Key)]; twice {
			t.Errorf("%q twice", d.Key)
		}
		found[string(d.Key)] = d.Op
		return nil
	}, func(Progress) {})
	return r, found, err
}

// model compares two maps.
func model(old, now map[string]string) (c Counts, ops map[string]Op) {
	ops = map[string]Op{}
	c.OldRecords, c.NewRecords = int64(len(old)), int64(len(now))
	for k, v := range old {
		switch w, found := now[k]; {
		case !found:
			ops[k] = Removed
			c.Removed++
			c.RemovedBytes += int64(len(k) + len(v))
		case v != w:
			ops[k] = Changed
			c.Changed++
			c.RemovedBytes += int64(len(v))
			c.AddedBytes += int64(len(w))
		}
	}
	for k, v := range now {
		if _, found := old[k]; !found {
			ops[k] = Added
			c.Added++
			c.AddedBytes += int64(len(k) + len(v))
		}
	}
	return c, ops
}

func randomRecords(rnd *rand.Rand) (old, now map[string]string) {
	old, now = map[string]string{}, map[string]string{}
	for range rnd.IntN(300) {
		k := fmt.Sprintf("key-%03d", rnd.IntN(400))
		if rnd.IntN(20) == 0 {
			k = string([]byte{0xff, byte(rnd.IntN(256)), 0})
		}
		v := strings.Repeat("v", rnd.IntN(30))
		if rnd.IntN(60) == 0 {
			v = strings.Repeat("L", blocks.LargeValue+1+rnd.IntN(3))
		}
		switch rnd.IntN(6) {
		case 0:
			old[k] = v
		case 1:
			now[k] = v
		case 2:
			old[k], now[k] = v, v+"2"
		case 3:
			old[k], now[k] = v+"1", v+"2"
		default:
			old[k], now[k] = v, v
		}
	}
	return old, now
}

// Random versions on one and on three nodes, partitioned alike or not, differ as a model says.
func TestDiff(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		old, now := randomRecords(rnd)
		if rnd.IntN(10) == 0 {
			now = maps.Clone(old)
		}
		parts := 1 + rnd.IntN(6)
		newParts, nodes := parts, 1+rnd.IntN(3)
		if rnd.IntN(4) == 0 {
			if newParts = rnd.IntN(6); newParts == 0 {
				now = nil
			}
		}
		m := &mesh{t: t, nodes: map[string]*reads.Reader{}}
		name := func(i int) string { return fmt.Sprint("node-", i) }
		held := func(i, p int) bool { return nodes == 1 || p%nodes == i || p%nodes == (i+1)%nodes }
		heldNew := held
		if seed%3 == 0 { // no node has both blocks
			held, heldNew = func(i, p int) bool { return nodes == 1 || p%nodes == i }, func(i, p int) bool { return nodes == 1 || p%nodes == (i+1)%nodes }
		}
		var addr string
		for i := range nodes {
			set := version.NewSet("db")
			others := func(held func(i, p int) bool) func(p int) []string {
				return func(p int) (all []string) {
					for j := range nodes {
						if j != i && held(j, p) {
							all = append(all, name(j))
						}
					}
					return append(all, "127.0.0.1:1")
				}
			}
			addContent(t, set, contents.Of("1"), following{advertised: others(held)}, parts, old, func(p int) bool { return held(i, p) })
			addContent(t, set, contents.Of("2"), following{reported: others(heldNew), partitions: newParts}, newParts, now, func(p int) bool { return heldNew(i, p) })
			m.nodes[name(i)] = reader(t, set, nil)
			addr = node(t, set, m)
		}
		want, ops := model(old, now)
		r, found, err := ask(t, addr, "diff=1..2&list")
		if err != nil || r.Counts != want || !maps.Equal(found, ops) || len(r.Unknown) > 0 || r.DB != "db" || r.Old != "1" || r.New != "2" {
			t.Fatalf("seed %d: %+v, %v; want %+v; %d of %d differences", seed, r, err, want, len(found), len(ops))
		}
		var rows Counts
		for _, row := range r.Partitions {
			rows.Added += row.Added
			rows.Removed += row.Removed
			rows.Changed += row.Changed
		}
		if rows.Added != want.Added || rows.Removed != want.Removed || rows.Changed != want.Changed {
			t.Errorf("seed %d: rows %+v, want %+v", seed, rows, want)
		}
	}
}

// Partitions that nobody has are unknown, and the others are compared.
func TestUnknown(t *testing.T) {
	records := map[string]string{}
	for i := range 100 {
		records[fmt.Sprint(i)] = "v"
	}
	set := version.NewSet("db")
	addVersion(t, set, "1", 4, records, func(p int) bool { return p != 2 })
	addVersion(t, set, "2", 4, records, func(p int) bool { return p != 3 })
	addVersion(t, set, "3", 5, records, func(p int) bool { return p != 3 })
	addr := node(t, set, &mesh{t: t})
	r, _, err := ask(t, addr, "diff=1..2")
	if err != nil || !slices.Equal(r.Unknown, []int{2, 3}) || r.Compared != 2 || !r.Equal() || r.OldRecords == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, _, err := ask(t, addr, "diff=1..3"); err != nil || !slices.Equal(r.Unknown, []int{-1}) || r.Compared != 0 {
		t.Errorf("partitioned differently: %+v, %v", r, err)
	}
}

// Nodes give the contents that the node that was asked compares, and not others of the same names. Those that report one of them without advertising it
// are asked, too.
func TestSameContents(t *testing.T) {
	records := map[string]string{"a": "1", "b": "2"}
	all, none := func(int) bool { return true }, func(int) bool { return false }
	another := map[string]string{"a": "other"}
	wrong := version.NewSet("db")
	addContent(t, wrong, contents.Of("1"), version.Solo{}, 1, records, all)
	addContent(t, wrong, contents.Of("2", "other files"), version.Solo{}, 1, another, all)
	right := version.NewSet("db")
	addContent(t, right, contents.Of("1"), version.Solo{}, 1, records, all)
	addContent(t, right, contents.Of("2", "other files"), version.Solo{}, 1, another, all)
	addContent(t, right, contents.Of("2"), version.Solo{}, 1, map[string]string{"a": "1", "b": "3"}, all)
	m := &mesh{t: t, nodes: map[string]*reads.Reader{"wrong": reader(t, wrong, nil), "right": reader(t, right, nil)}}
	for _, tt := range []struct {
		at      []string
		unknown []int
	}{{[]string{"wrong"}, []int{0}}, {[]string{"wrong", "right"}, nil}} {
		at := func(int) []string { return tt.at }
		set := version.NewSet("db")
		addContent(t, set, contents.Of("1"), following{advertised: at}, 1, records, none)
		addContent(t, set, contents.Of("2"), following{reported: at, partitions: 1}, 1, nil, none)
		r, _, err := ask(t, node(t, set, m), "diff=1..2")
		if err != nil || !slices.Equal(r.Unknown, tt.unknown) || tt.unknown == nil && (r.Changed != 1 || r.Removed != 0) {
			t.Errorf("at %q: %+v, %v", tt.at, r, err)
		}
	}
}

// Requests that are wrong.
func TestErrors(t *testing.T) {
	set := version.NewSet("db")
	addVersion(t, set, "1", 1, map[string]string{"a": "1"}, func(int) bool { return true })
	addr := node(t, set, nil)
	for path, want := range map[string]string{
		"db?diff=1": "400", "db?diff=": "400", "db?diff=1..": "400", "db?diff=../..": "400", "db?diff=1..9": "404: version 9 of db is not on this node: its status names those that are",
		"db?diff=9..1": "404: version 9", "other?diff=1..1": "404: there is no database other", "db?diff=1..%zz": "400",
	} {
		resp, err := http.Get("http://" + addr + "/" + path)
		expect.NoError(t, err)
		var b bytes.Buffer
		b.ReadFrom(resp.Body)
		resp.Body.Close()
		if got := fmt.Sprintf("%d: %s", resp.StatusCode, b.String()); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// What another node sends is checked: a comparison is right or the partition is unknown.
func TestLiars(t *testing.T) {
	records := map[string]string{"a": "1", "b": "2", "c": strings.Repeat("L", blocks.LargeValue+1)}
	set, other := version.NewSet("db"), version.NewSet("db")
	addContent(t, set, contents.Of("1"), following{advertised: func(int) []string { return []string{"liar"} }}, 1, nil, func(int) bool { return false })
	addVersion(t, set, "2", 1, map[string]string{"a": "1"}, func(int) bool { return true })
	addVersion(t, other, "1", 1, records, func(int) bool { return true })
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		cut := func(b []byte) []byte { return b[:rnd.IntN(len(b)+1)] }
		m := &mesh{t: t, nodes: map[string]*reads.Reader{"liar": reader(t, other, nil)}, spoil: cut}
		if seed%2 == 0 {
			m.spoil = func(b []byte) []byte { return append(b, byte(seed)) }
		}
		r, _, err := ask(t, node(t, set, m), "diff=1..2")
		if err != nil || !slices.Equal(r.Unknown, []int{0}) && (len(r.Unknown) > 0 || r.Removed != 2 || r.Added+r.Changed != 0) {
			t.Fatalf("seed %d: %+v, %v", seed, r, err)
		}
	}
}

// Blocks of the same content are not read, and damage is an error that names the partition.
func TestSkippedAndDamaged(t *testing.T) {
	records := map[string]string{"a": "1", "b": "2"}
	set := version.NewSet("db")
	all := func(int) bool { return true }
	addVersion(t, set, "1", 1, records, all)
	addVersion(t, set, "2", 1, records, all)
	addVersion(t, set, "3", 1, map[string]string{"a": "1"}, all)
	h := set.AcquireVersion("1", "")
	path := h.Block(0).(*blocks.Reader).Name()
	h.Release()
	b, err := os.ReadFile(path)
	expect.NoError(t, err)
	b[3] ^= 1
	expect.NoError(t, os.WriteFile(path, b, 0o644))
	addr := node(t, set, nil)
	if r, _, err := ask(t, addr, "diff=1..2"); err != nil || !r.Equal() || r.NewRecords != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, _, err := ask(t, addr, "diff=1..3"); err == nil || !strings.Contains(err.Error(), "500: partition 0: a block cannot be read") {
		t.Errorf("%v", err)
	}
}

// FuzzRead: an answer of any bytes is an error or a report.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"op":"added","key":{"base64":"/w=="}}` + "\n" + `{"report":{"db":"d","partitions":[{"partition":1}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Read(bytes.NewReader(b), func(Difference) error { return nil }, func(Progress) {})
		if (r == nil) == (err == nil) {
			t.Errorf("%v, %v", r, err)
		}
		if r != nil {
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		}
	})
}
