package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/shard"
	"sequins/status"
	"sequins/test/contents"
	"sequins/version"
)

// addVersion adds a version with the records of a map to a set, of which a node holds some partitions.
func addVersion(t *testing.T, set *version.Set, name string, partitions int, records map[string]string, held func(p int) bool) {
	t.Helper()
	addContent(t, set, contents.Of(name), version.Solo{}, partitions, records, held)
}

func addContent(t *testing.T, set *version.Set, c content.Content, f version.Following, partitions int, records map[string]string, held func(p int) bool) {
	t.Helper()
	v := version.New(version.Info{DB: "db", Content: c, Partitions: partitions, Partitioner: shard.String, Following: f})
	byPartition := make([][]string, partitions)
	for k := range records {
		p := shard.String.Partition([]byte(k), partitions)
		byPartition[p] = append(byPartition[p], k)
	}
	for p, keys := range byPartition {
		if !held(p) {
			continue
		}
		slices.Sort(keys)
		var b bytes.Buffer
		w, err := blocks.NewWriter(&b, blocks.WriterOptions{Partition: p, Partitions: partitions})
		for _, k := range keys {
			if err == nil {
				err = w.Add([]byte(k), []byte(records[k]))
			}
		}
		if err == nil {
			_, err = w.Finish()
		}
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%05d.block", p))
		if err == nil {
			err = os.WriteFile(path, b.Bytes(), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := blocks.Open(path)
		if err == nil {
			err = v.Put(p, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set.Prepare(v)
	t.Cleanup(func() {
		if v := set.Remove(c.Input); v != nil {
			if err := v.Close(t.Context()); err != nil {
				t.Log(err)
			}
		}
	})
}

// node returns a server with a handler for a set. others are the addresses of the other nodes.
func node(t *testing.T, set *version.Set, others func() []status.Peer) (addr string) {
	h := New(Options{Set: func(db []byte) *version.Set {
		if string(db) != "db" {
			return nil
		}
		return set
	}, Peers: others, Secret: "s"})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("proxy") && r.Header.Get("X-Sequins-Cluster") != "s" {
			t.Errorf("%s without the secret", r.URL)
		}
		lines := r.Header.Get("Accept") == "application/x-ndjson"
		if code, text := h.Serve(r.Context(), w, strings.Trim(r.URL.Path, "/"), r.URL.RawQuery, r.URL.Query().Has("proxy"), lines); code != 200 {
			http.Error(w, text, code)
		}
	}))
	t.Cleanup(func() { s.Close(); h.Close() })
	return strings.TrimPrefix(s.URL, "http://")
}

// ask requests lines.
func ask(t *testing.T, addr, query string) (*Report, map[string]Op, error) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+addr+"/db?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/x-ndjson")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
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
		switch rnd.IntN(5) {
		case 0:
			old[k] = v
		case 1:
			now[k] = v
		case 2:
			old[k], now[k] = v, v+"2"
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
			newParts, nodes = rnd.IntN(6), 1
			if newParts == 0 {
				now = nil
			}
		}
		var peers []status.Peer
		for i := range nodes {
			set := version.NewSet("db")
			held := func(p int) bool { return nodes == 1 || p%nodes == i || p%nodes == (i+1)%nodes }
			heldNew := held
			if seed%3 == 0 { // no node has both blocks
				held, heldNew = func(p int) bool { return nodes == 1 || p%nodes == i }, func(p int) bool { return nodes == 1 || p%nodes == (i+1)%nodes }
			}
			addVersion(t, set, "1", parts, old, held)
			addVersion(t, set, "2", newParts, now, heldNew)
			var others func() []status.Peer
			if i == nodes-1 {
				others = func() []status.Peer { return append([]status.Peer{{Addr: "127.0.0.1:1"}}, peers[:nodes-1]...) }
			}
			peers = append(peers, status.Peer{Addr: node(t, set, others)})
		}
		want, ops := model(old, now)
		r, found, err := ask(t, peers[nodes-1].Addr, "diff=1..2&list")
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
		for op, keys := range r.Samples {
			for _, k := range keys {
				if ops[string(k)] != op {
					t.Errorf("seed %d: %q is a sample of %s", seed, k, op)
				}
			}
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
	addr := node(t, set, func() []status.Peer { return []status.Peer{{Addr: "127.0.0.1:1"}} })
	r, _, err := ask(t, addr, "diff=1..2")
	if err != nil || !slices.Equal(r.Unknown, []int{2, 3}) || r.Compared != 2 || !r.Equal() || r.OldRecords == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, _, err := ask(t, addr, "diff=1..3"); err != nil || !slices.Equal(r.Unknown, []int{-1}) || r.Compared != 0 {
		t.Errorf("partitioned differently: %+v, %v", r, err)
	}
}

// Nodes compare the contents that the node that was asked compares, and not others of the same names. Those that hold one of them without serving it
// are asked, too.
func TestSameContents(t *testing.T) {
	records := map[string]string{"a": "1", "b": "2"}
	all, none := func(int) bool { return true }, func(int) bool { return false }
	other := version.NewSet("db")
	addContent(t, other, contents.Of("1"), version.Solo{}, 1, records, all)
	addContent(t, other, contents.Of("2", "other files"), version.Solo{}, 1, map[string]string{"a": "other"}, all)
	wrong := node(t, other, nil)
	holder := version.NewSet("db")
	addContent(t, holder, contents.Of("1"), version.Solo{}, 1, records, all)
	addContent(t, holder, contents.Of("2", "other files"), version.Solo{}, 1, map[string]string{"a": "other"}, all)
	addContent(t, holder, contents.Of("2"), version.Solo{}, 1, map[string]string{"a": "1", "b": "3"}, all)
	right := node(t, holder, nil)

	set := version.NewSet("db")
	held := &heldAt{}
	addContent(t, set, contents.Of("1"), version.Solo{}, 1, records, none)
	addContent(t, set, contents.Of("2"), held, 1, nil, none)
	addr := node(t, set, func() []status.Peer { return []status.Peer{{Addr: wrong}} })
	if r, _, err := ask(t, addr, "diff=1..2"); err != nil || !slices.Equal(r.Unknown, []int{0}) {
		t.Errorf("no node has both contents: %+v, %v", r, err)
	}
	held.of, held.addr = contents.Of("2"), right
	if r, _, err := ask(t, addr, "diff=1..2"); err != nil || len(r.Unknown) > 0 || r.Changed != 1 || r.Removed != 0 {
		t.Errorf("a node holds both contents: %+v, %v", r, err)
	}
}

// heldAt is a version that another node holds, and perhaps does not serve.
type heldAt struct {
	version.Solo
	of   content.Content
	addr string
}

func (h *heldAt) Elsewhere() map[content.Content][]string {
	return map[content.Content][]string{h.of: {h.addr}}
}

// Requests that are wrong, and nodes that say impossible things.
func TestErrors(t *testing.T) {
	set := version.NewSet("db")
	addVersion(t, set, "1", 1, map[string]string{"a": "1"}, func(int) bool { return false })
	addVersion(t, set, "2", 1, map[string]string{"a": "1"}, func(int) bool { return true })
	answers := ""
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answers) }))
	defer liar.Close()
	addr := node(t, set, func() []status.Peer { return []status.Peer{{Addr: strings.TrimPrefix(liar.URL, "http://")}} })
	tooMany := "0"
	for p := range maxPartitions {
		tooMany += fmt.Sprint(",", p+1)
	}
	for query, want := range map[string]string{
		"diff=1": "400", "diff=": "400", "diff=1..": "400", "diff=../..": "400", "diff=1..%zz": "400", "diff=1..9": "404: version 9 of db is not on this node",
		"diff=9..1": "404: version 9", "diff=1..2&proxy=x": "400", "diff=1..2&proxy=x&of=a": "400", "diff=1..2&proxy=x&of=0,1,0": "400: of must be different", "diff=1..2&of=0": "400: of, keys and contents are for", "diff=1..2&keys=old": "400",
		"diff=1..2&proxy=x&of=" + tooMany: "400",
	} {
		req, err := http.NewRequest("GET", "http://"+addr+"/db?"+query, nil)
		if err != nil {
			continue
		}
		req.Header.Set("X-Sequins-Cluster", "s")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		b.ReadFrom(resp.Body)
		resp.Body.Close()
		if got := fmt.Sprintf("%d: %s", resp.StatusCode, b.String()); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	for _, text := range []string{
		"", "x\n", `{"row":{"partition":0,"added":-1}}` + "\n", `{"row":{"partition":1}}` + "\n", `{"row":{"partition":0,"samples":{"added":["1","2","3","4","5","6"]}}}` + "\n",
		`{"row":{"partition":0,"samples":{"bad":["1"]}}}` + "\n", `{"error":"no"}` + "\n", `{"report":{}}` + "\n", strings.Repeat("x", 1<<20),
	} {
		answers = text
		if r, _, err := ask(t, addr, "diff=1..2"); err != nil || !slices.Equal(r.Unknown, []int{0}) {
			t.Errorf("%.60q: %+v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "\x01a\x01", "\x01a\x0112345678", "\x01b\x0112345678\x01a\x0112345678\x81\x80\x04", "\xff\xff\xff\xff\x7f", strings.Repeat("\xff", 100), strings.Repeat("\x02", 1<<16)} {
		answers = text
		if r, _, err := ask(t, addr, "diff=1..2"); err != nil || !slices.Equal(r.Unknown, []int{0}) {
			t.Errorf("keys %.60q: %+v, %v", text, r, err)
		}
	}
	answers = "\x01a\x0112345678\x81\x80\x04"
	if r, _, err := ask(t, addr, "diff=1..2"); err != nil || r.Changed != 1 || len(r.Unknown) != 0 {
		t.Errorf("good keys: %+v, %v", r, err)
	}
	answers = `{"op":"added","key":"x"}` + "\n" + `{"error":"disk"}` + "\n"
	if r, _, err := ask(t, addr, "diff=1..2&list"); err == nil || !strings.Contains(err.Error(), "disk") {
		t.Errorf("a list that breaks off: %+v, %v", r, err)
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
	if err != nil {
		t.Fatal(err)
	}
	b[3] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	addr := node(t, set, nil)
	if r, _, err := ask(t, addr, "diff=1..2"); err != nil || !r.Equal() || r.NewRecords != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, _, err := ask(t, addr, "diff=1..3"); err == nil || !strings.Contains(err.Error(), "500: partition 0 of version 1: ") {
		t.Errorf("%v", err)
	}
}

// FuzzRead: an answer of any bytes is an error or a report.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"op":"added","key":{"base64":"/w=="}}` + "\n" + `{"report":{"db":"d","partitions":[{"partition":1,"samples":{"added":["x"]}}]}}`))
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
