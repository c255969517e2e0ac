package reads_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/proxy"
	"sequins/reads"
	"sequins/shard"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/version"
)

// farReader is a Reader of a version with two partitions that only another node has, which answers with f.
func farReader(t testing.TB, f func(p *reads.PageRequest) []byte) (*reads.Reader, func()) {
	v := version.New(version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 2, Partitioner: shard.String, Following: replicas{of: [][]string{{"a:1"}, {"a:1"}}}})
	set := version.NewSet("db")
	set.Prepare(v)
	expect.NoError(t, set.Activate(contents.In("v1")))
	fetch := proxyFunc(func(q *proxy.Query) (*proxy.Answer, error) {
		p, err := reads.ParsePageRequest(bytes.TrimPrefix(q.Params, []byte("page=")))
		if err != nil {
			t.Errorf("a request with %q: %v", q.Params, err)
		}
		body := f(p)
		return &proxy.Answer{Peer: "a:1", Status: 200, Length: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}, nil
	})
	return reads.New(catalog{"db": set}, reads.Options{Proxy: fetch, Logger: quiet}), func() {
		if err := set.Remove(contents.In("v1")).Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// pageOf returns a page as another node would send it.
func pageOf(more byte, records ...record) (b []byte) {
	for _, r := range records {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(r.key))), r.key...)
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(r.value))), r.value...)
	}
	return append(b, 0xff, 0xff, 0xff, 0xff, more)
}

// Pages that lie are errors, and nothing of them is passed on.
func TestHostilePages(t *testing.T) {
	large := func(n uint32) []byte {
		b := append(pageOf(0, record{"k", ""})[:5], binary.BigEndian.AppendUint32(nil, n|1<<31)...)
		return append(b, 0xff, 0xff, 0xff, 0xff, 0)
	}
	for name, body := range map[string][]byte{
		"empty":                     {},
		"no end":                    pageOf(0)[:4],
		"short":                     pageOf(0, record{"k", "value"})[:12],
		"an end of another kind":    pageOf(2),
		"more of nothing":           pageOf(1),
		"something behind the end":  append(pageOf(0), 0),
		"a key too long":            append(binary.BigEndian.AppendUint32(nil, blocks.MaxKey+1), make([]byte, 70<<10)...),
		"a key longer than it":      append(binary.BigEndian.AppendUint32(nil, 100), 1, 2, 3, 4, 5, 6),
		"a value longer than it":    append(pageOf(0, record{"k", ""})[:5], 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0),
		"a small value that is not": pageOf(0, record{"k", string(make([]byte, blocks.LargeValue+1))}),
		"a large value that is not": large(10),
		"twice":                     pageOf(0, record{"k", "1"}, record{"k", "2"}),
		"out of order":              pageOf(0, record{"k2", ""}, record{"k1", ""}),
		"before the range":          pageOf(0, record{"a", ""}),
		"behind the range":          pageOf(0, record{"x", ""}),
		"too long":                  pageOf(0, manyRecords(40_000)...),
	} {
		rd, done := farReader(t, func(*reads.PageRequest) []byte { return body })
		r := rd.NewRead()
		got, _, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, &reads.Range{Start: []byte("b"), End: []byte("x")})
		if o != reads.Unreachable || len(got) > 0 {
			t.Errorf("%s: outcome %d, %d records", name, o, len(got))
		}
		done()
	}
}

func manyRecords(n int) (all []record) {
	for i := range n {
		all = append(all, record{fmt.Sprintf("k%08d", i), "a value of more than 30 bytes, for the size"})
	}
	return all
}

// A page with keys of a partition that was not asked for is an error.
func TestPageOfAnotherPartition(t *testing.T) {
	of := [][]string{{"a:1"}, {"a:1"}}
	records := map[string]string{"b": "1", "c": "2"} // in different partitions
	set := held(t, "v1", records, of, func(p int) bool { return p == shard.String.Partition([]byte("b"), 2) })
	rd := reads.New(catalog{"db": set}, reads.Options{Logger: quiet, Proxy: proxyFunc(func(*proxy.Query) (*proxy.Answer, error) {
		body := pageOf(0, record{"b", "forged"}, record{"c", "2"})
		return &proxy.Answer{Peer: "a:1", Status: 200, Length: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}, nil
	})})
	r := rd.NewRead()
	if got, _, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, &reads.Range{}); o != reads.Unreachable || len(got) > 0 {
		t.Errorf("outcome %d, %v", o, got)
	}
}

// FuzzPage has a peer answer with anything. What is passed on ascends and is in the range.
func FuzzPage(f *testing.F) {
	f.Add(pageOf(0, record{"b", "1"}, record{"c", "2"}), pageOf(0), []byte("a"), []byte("z"), false)
	f.Add(pageOf(1, record{"b", "1"}, record{"c", "2"}), pageOf(0, record{"d", ""}), []byte("a"), []byte("z"), false)
	f.Add(pageOf(1, record{"b", "1"}), pageOf(1, record{"b", ""}), []byte("a"), []byte("z"), true)
	f.Fuzz(func(t *testing.T, first, second, start, end []byte, keys bool) {
		var n atomic.Int32
		rd, done := farReader(t, func(*reads.PageRequest) []byte {
			if n.Add(1) == 1 {
				return first
			}
			return second
		})
		defer done()
		r := rd.NewRead()
		defer r.Release()
		r.Begin(time.Now())
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if len(start) > 100 || len(end) > 100 {
			return
		}
		s, o := r.Scan(ctx, &reads.Query{DB: []byte("db")}, &reads.Range{Start: start, End: end, KeysOnly: keys})
		if o != reads.Found {
			return
		}
		var last []byte
		for i := 0; s.Next() && i < 1000; i++ {
			k := s.Key()
			if i > 0 && bytes.Compare(k, last) <= 0 || bytes.Compare(k, start) < 0 || len(end) > 0 && bytes.Compare(k, end) >= 0 {
				t.Errorf("%q after %q, from %q to %q", k, last, start, end)
			}
			last = bytes.Clone(k)
			if n.Load() > 2 {
				cancel() // or the retries take long
			}
		}
	})
}

// FuzzPageRequest parses anything.
func FuzzPageRequest(f *testing.F) {
	f.Add("AQAAgIAEAAAAAgAA")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := reads.ParsePageRequest([]byte(text)); (p == nil) == (err == nil) {
			t.Errorf("%v, %v", p, err)
		}
	})
}

// badIterator is a block that cannot be iterated from a key on, as the test damages it.
type badIterator struct {
	*blocks.Reader
	other *blocks.Reader // its file is damaged
}

func (b badIterator) IterWithin(start, end []byte, size int) *blocks.Iterator {
	return b.other.IterWithin(start, end, size)
}

// A block that turns out damaged in the middle is reported, and read elsewhere from there; or the scan fails.
func TestDamagedScan(t *testing.T) {
	records := map[string]string{}
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range 5000 {
		records[fmt.Sprintf("key-%05d", i)] = fmt.Sprintf("%d", rnd.Uint64())
	}
	of := [][]string{{"a:1"}, {"a:1"}}
	mesh := &scanMesh{t: t, nodes: map[string]*reads.Reader{}, rnd: rnd}
	mesh.nodes["a:1"] = reads.New(catalog{"db": held(t, "v1", records, of, func(int) bool { return true })}, reads.Options{Logger: quiet})
	for _, test := range []struct {
		proxy reads.Proxy
		want  reads.Outcome
	}{{mesh, reads.Found}, {fails(proxy.ErrNoPeers), reads.Unreadable}, {nil, reads.Unreadable}} {
		mine := held(t, "v1", records, of, func(int) bool { return true })
		damagePartition(t, mine, 1)
		rd := reads.New(catalog{"db": mine}, reads.Options{Proxy: test.proxy, Logger: quiet})
		r := rd.NewRead()
		want := scanModel(records, &reads.Range{})
		got, _, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, &reads.Range{})
		if o != test.want || len(got) < 100 {
			t.Errorf("outcome %d after %d records, want %d", o, len(got), test.want)
		}
		if o != reads.Found {
			want = want[:min(len(got), len(want)-1)] // nothing is missing in between
		}
		sameRecords(t, got, want, "of a damaged block")
		select {
		case c := <-mine.Corruptions():
			if c.Partition != 1 || !errors.Is(c.Err, blocks.ErrCorrupt) {
				t.Errorf("reported: %+v", c)
			}
		default:
			t.Error("the damage was not reported")
		}
		n, o := countOf(t, &r, &reads.Range{Prefix: []byte("key")})
		if o != test.want && test.want == reads.Found || test.want == reads.Found && n != int64(len(records)) {
			t.Errorf("counted %d, outcome %d", n, o)
		}
	}
}

// damagePartition replaces the block of a partition by one with a damaged page in the middle.
func damagePartition(t *testing.T, set *version.Set, partition int) {
	t.Helper()
	err := set.EachBlock(func(_ *version.Handle, p int, b version.Block) error {
		if p != partition {
			return nil
		}
		r := b.(*blocks.Reader)
		return set.Version(contents.In("v1")).Put(p, badIterator{r, damagedCopy(t, r)})
	})
	expect.NoError(t, err)
}

// damagedCopy writes the records of a block into another, of which a page in the middle is damaged.
func damagedCopy(t *testing.T, r *blocks.Reader) *blocks.Reader {
	t.Helper()
	var b bytes.Buffer
	w, err := blocks.NewWriter(&b, blocks.WriterOptions{Partitions: 1, BlockSize: 512})
	expect.NoError(t, err)
	it := r.Iter(nil, nil)
	for it.Next() {
		expect.NoError(t, w.Add(it.Key(), it.Value().Bytes()))
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	data[len(data)/3] ^= 1
	damaged, err := blocks.NewReader(bytes.NewReader(data), int64(len(data)), "damaged.block")
	expect.NoError(t, err)
	t.Cleanup(func() { damaged.Close() })
	return damaged
}

// Too many ordered reads at a time are refused; those of other nodes have a limit of their own.
func TestScansAtOnce(t *testing.T) {
	set := held(t, "v1", map[string]string{"a": "1"}, [][]string{nil}, func(int) bool { return true })
	rd := reads.New(catalog{"db": set}, reads.Options{MaxScans: 2, Logger: quiet})
	all := make([]reads.Read, 3)
	for i := range all {
		all[i] = rd.NewRead()
		all[i].Begin(time.Now())
		defer all[i].Release()
		_, o := all[i].Scan(context.Background(), &reads.Query{DB: []byte("db")}, &reads.Range{})
		if want := []reads.Outcome{reads.Found, reads.Found, reads.Busy}[i]; o != want {
			t.Errorf("scan %d: outcome %d, want %d", i, o, want)
		}
	}
	all[0].Release()
	all[0].Begin(time.Now())
	if _, o := all[0].Scan(context.Background(), &reads.Query{DB: []byte("db")}, &reads.Range{}); o != reads.Found {
		t.Errorf("after a release: outcome %d", o)
	}
}

// Nodes that have given up some partitions are still taken for their replicas, so that each of those asked for a page of all
// of them refuses. Pages of those that they hold are requested by themselves.
func TestScanOfMovedPartitions(t *testing.T) {
	records := map[string]string{}
	for i := range 2000 {
		records[fmt.Sprintf("key-%05d", i)] = fmt.Sprintf("value %d", i)
	}
	of := make([][]string, 7)
	for p := range of {
		of[p] = []string{"a:1", "b:1"}
	}
	m := &scanMesh{t: t, nodes: map[string]*reads.Reader{}, rnd: rand.New(rand.NewPCG(1, 1))}
	for i, name := range of[0] {
		set := held(t, "v1", records, of, func(p int) bool { return p%2 == i })
		m.nodes[name] = reads.New(catalog{"db": set}, reads.Options{Logger: quiet})
	}
	rd := reads.New(catalog{"db": held(t, "v1", records, of, func(int) bool { return false })}, reads.Options{Proxy: m, Logger: quiet})
	r := rd.NewRead()
	got, _, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, &reads.Range{})
	if want := scanModel(records, &reads.Range{}); o != reads.Found || !slices.Equal(got, want) {
		t.Errorf("outcome %d, %d records of %d", o, len(got), len(want))
	}
	r.Begin(time.Now())
	defer r.Release()
	if n, o := r.Count(context.Background(), &reads.Query{DB: []byte("db")}, &reads.Range{}); o != reads.Found || n != int64(len(records)) {
		t.Errorf("outcome %d, a count of %d", o, n)
	}
}

// Nodes that are too busy for a page are not asked for each of its partitions.
func TestScanOfBusyNodes(t *testing.T) {
	of := make([][]string, 1024)
	for p := range of {
		of[p] = []string{"a:1", "b:1"}
	}
	var asked atomic.Int32
	rd := reads.New(catalog{"db": held(t, "v1", nil, of, func(int) bool { return false })}, reads.Options{Logger: quiet, Proxy: proxyFunc(func(*proxy.Query) (*proxy.Answer, error) {
		asked.Add(1)
		return nil, proxy.ErrNoPeers
	})})
	r := rd.NewRead()
	if _, _, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, &reads.Range{}); o != reads.Unreachable {
		t.Errorf("outcome %d", o)
	}
	if n := asked.Load(); n > 10 {
		t.Errorf("%d requests", n)
	}
}

// The greatest limit is as none.
func TestGreatestLimit(t *testing.T) {
	records := map[string]string{"a": "1", "b": "2", "c": "3"}
	of := [][]string{{"a:1"}, {"a:1"}}
	m := &scanMesh{t: t, nodes: map[string]*reads.Reader{}, rnd: rand.New(rand.NewPCG(1, 1))}
	m.nodes["a:1"] = reads.New(catalog{"db": held(t, "v1", records, of, func(int) bool { return true })}, reads.Options{Logger: quiet})
	rd := reads.New(catalog{"db": held(t, "v1", records, of, func(int) bool { return false })}, reads.Options{Proxy: m, Logger: quiet})
	r := rd.NewRead()
	for _, limit := range []int64{math.MaxInt64, math.MaxInt64 - 1} {
		if got, _, o := collectScan(t, &r, &reads.Query{DB: []byte("db")}, &reads.Range{Limit: limit}); o != reads.Found || len(got) != 3 {
			t.Errorf("limit %d: outcome %d, %d records", limit, o, len(got))
		}
	}
}

// The node that replaces a damaged block fails at its first page, before it has given a record, and answers then.
func TestCountReplacedTwice(t *testing.T) {
	records := map[string]string{}
	for i := range 5000 {
		records[fmt.Sprintf("key-%05d", i)] = "12345678901234567890"
	}
	of := [][]string{{"a:1"}, {"a:1"}}
	m := &scanMesh{t: t, nodes: map[string]*reads.Reader{}, rnd: rand.New(rand.NewPCG(1, 1))}
	m.nodes["a:1"] = reads.New(catalog{"db": held(t, "v1", records, of, func(int) bool { return true })}, reads.Options{Logger: quiet})
	for _, damaged := range []int{0, 1} {
		mine := held(t, "v1", records, of, func(int) bool { return true })
		damagePartition(t, mine, damaged)
		n := 0
		rd := reads.New(catalog{"db": mine}, reads.Options{Logger: quiet, Proxy: proxyFunc(func(q *proxy.Query) (*proxy.Answer, error) {
			if n++; n <= 2 {
				return nil, proxy.ErrNoPeers
			}
			return m.Fetch(context.Background(), q)
		})})
		r := rd.NewRead()
		if n, o := countOf(t, &r, &reads.Range{Prefix: []byte("key")}); o != reads.Found || n != 5000 {
			t.Errorf("counted %d, outcome %d", n, o)
		}
	}
}

// A count ends with its client, also where all blocks are here.
func TestCountCancelled(t *testing.T) {
	records := map[string]string{}
	for i := range 10000 {
		records[fmt.Sprintf("key-%05d", i)] = ""
	}
	rd := reads.New(catalog{"db": held(t, "v1", records, make([][]string, 2), func(int) bool { return true })}, reads.Options{Logger: quiet})
	r := rd.NewRead()
	r.Begin(time.Now())
	defer r.Release()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if n, o := r.Count(ctx, &reads.Query{DB: []byte("db")}, &reads.Range{Prefix: []byte("key")}); o != reads.GivenUp {
		t.Errorf("counted %d, outcome %d", n, o)
	}
}
