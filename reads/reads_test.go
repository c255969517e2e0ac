package reads_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"sequins/blocks"
	"sequins/observe/metrics"
	"sequins/observe/tracing"
	"sequins/proxy"
	"sequins/reads"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/test/versions"
	"sequins/version"
)

// catalog has sets by name; "perhaps" may exist elsewhere.
type catalog map[string]*version.Set

func (c catalog) Set(db []byte) *version.Set { return c[string(db)] }
func (c catalog) MayExist(db []byte) bool    { return string(db) == "perhaps" }

// peersOnly is a version whose partitions are all on other nodes.
type peersOnly struct{ version.Solo }

func (peersOnly) Peers(int) []string { return []string{"q:2", "p:1"} }

// setOf returns a set with one version: with the block of its first partition if there are records.
func setOf(t *testing.T, info version.Info, records map[string]string) *version.Set {
	t.Helper()
	v := version.New(info)
	if len(records) > 0 {
		expect.NoError(t, v.Put(0, versions.Open(t, 0, 1, records)))
	}
	set := version.NewSet(info.DB)
	versions.Activate(t, set, v)
	return set
}

// proxyFunc is a Proxy of one function.
type proxyFunc func(q *proxy.Query) (*proxy.Answer, error)

func (f proxyFunc) Fetch(_ context.Context, q *proxy.Query) (*proxy.Answer, error) { return f(q) }

func fails(err error) proxyFunc {
	return func(*proxy.Query) (*proxy.Answer, error) { return nil, err }
}

func answers(status int, value string) proxyFunc {
	return func(*proxy.Query) (*proxy.Answer, error) {
		return &proxy.Answer{Peer: "p:1", Status: status, Length: int64(len(value)), Body: io.NopCloser(strings.NewReader(value))}, nil
	}
}

// Without a secret anybody can ask like another node, and gets nothing of a version that a gate holds. With a secret only nodes can.
func TestWithheldFromClients(t *testing.T) {
	info := func(name string) version.Info {
		return version.Info{DB: "db", Content: contents.Of(name), Partitions: 1, Following: peersOnly{}}
	}
	set := setOf(t, info("v1"), map[string]string{"k": "1"})
	held := version.New(info("v2"))
	expect.NoError(t, held.Put(0, versions.Open(t, 0, 1, map[string]string{"k": "2"})))
	held.Withhold(true)
	set.Prepare(held)
	for _, test := range []struct {
		secret   string
		withheld bool
		want     reads.Outcome
	}{{"", true, reads.NotHere}, {"s", true, reads.Found}, {"", false, reads.Found}} {
		held.Withhold(test.withheld)
		r := reads.New(catalog{"db": set}, reads.Options{PeerSecret: test.secret, Metrics: metrics.New().Server}).NewRead()
		q := &reads.Query{DB: []byte("db"), Key: []byte("k"), Version: []byte("v2")}
		if got := r.Do(q); got != test.want {
			t.Errorf("%+v: a key: %d", test, got)
		}
		r.Release()
		if got := r.DoBatch(q, [][]byte{[]byte("k")}); got != test.want {
			t.Errorf("%+v: a batch: %d", test, got)
		}
		r.Release()
	}
	if err := set.Remove(contents.In("v2")).Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Each outcome of a read, the node that answered, and the counter that counts it.
func TestOutcomes(t *testing.T) {
	info := func(db string, partitions int) version.Info {
		return version.Info{DB: db, Content: contents.Of("v1"), Partitions: partitions, Following: peersOnly{}}
	}
	c := catalog{
		"here": setOf(t, info("here", 1), map[string]string{"k": "value"}), "away": setOf(t, info("away", 1), nil),
		"empty": setOf(t, info("empty", 0), nil), "none": version.NewSet("none"),
	}
	condition := []proxy.Field{{Name: "If-None-Match", Value: []byte("*")}}
	no := errors.New("connection refused")
	for _, test := range []struct {
		query string // db/key/version/content
		proxy reads.Proxy
		want  reads.Outcome
		value string
		peer  string
	}{
		{"here/k", nil, reads.Found, "value", ""},
		{"here/k/v1", nil, reads.Found, "value", ""},
		{"here/k/true/" + contents.Of("v1").Code(), nil, reads.Found, "value", ""},
		{"here/absent", nil, reads.Absent, "", ""},
		{"empty/k", nil, reads.Absent, "", ""},
		{"here/k/v1/" + contents.Of("v1").Code(), nil, reads.Found, "value", ""},
		{"here/k/v1/" + contents.Of("v1", "other files").Code(), nil, reads.NotHere, "", ""},
		{"here/k/v2", nil, reads.NotHere, "", ""},
		{"nothing/k/v1", nil, reads.NotHere, "", ""},
		{"nothing/k", nil, reads.NoDB, "", ""},
		{"perhaps/k", nil, reads.Unready, "", ""},
		{"none/k", nil, reads.Unready, "", ""},
		{"away/k/v1", answers(200, "x"), reads.NotLocal, "", ""},
		{"away/k", nil, reads.Unreadable, "", ""},
		{"away/k", fails(no), reads.Unreachable, "", ""},
		{"away/k", fails(fmt.Errorf("peers: %w", context.DeadlineExceeded)), reads.Late, "", ""},
		{"away/k", fails(fmt.Errorf("peers: %w", context.Canceled)), reads.GivenUp, "", ""},
		{"away/k", answers(200, "theirs"), reads.Found, "theirs", "p:1"},
		{"away/k", answers(404, ""), reads.Absent, "", "p:1"},
		{"away/k", answers(304, ""), reads.Conditional, "", "p:1"},
	} {
		m := metrics.New()
		rd := reads.New(c, reads.Options{Proxy: test.proxy, Metrics: m.Server, Logger: slog.New(slog.DiscardHandler)})
		r := rd.NewRead()
		part := append(strings.Split(test.query, "/"), "", "")
		q := reads.Query{DB: []byte(part[0]), Key: []byte(part[1]), Version: []byte(part[2]), Content: []byte(part[3]), Fields: condition}
		r.Begin(time.Now())
		got := r.Do(&q)
		var value []byte
		if got == reads.Found {
			var err error
			if value, err = io.ReadAll(r.Body()); err != nil || r.Length != int64(len(value)) || r.Peer == "" && string(r.Bytes) != string(value) {
				t.Errorf("%s: %q of %d bytes, %v", test.query, value, r.Length, err)
			}
		}
		if got != test.want || string(value) != test.value || r.Peer != test.peer {
			t.Errorf("%s: %d %q from %q, want %d", test.query, got, value, r.Peer, test.want)
		}
		r.Done(tracing.Answer{Status: 299})
		r.Release()
		rd.Stop()
		if n := requests(t, m); n != 1 {
			t.Errorf("%s: counted %v times", test.query, n)
		}
	}
}

// requests returns the number of requests that are counted.
func requests(t *testing.T, m *metrics.Metrics) (n float64) {
	t.Helper()
	families, err := m.Registry().Gather()
	expect.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "sequins_requests_total" {
			for _, counter := range f.GetMetric() {
				n += counter.GetCounter().GetValue()
			}
		}
	}
	return n
}

// The requests of a database are forgotten when it has gone, and counted again when it is back.
func TestDatabaseIsBack(t *testing.T) {
	info := version.Info{Content: contents.Of("v1"), Partitions: 1}
	records := map[string]string{"k": "v"}
	c := catalog{"a": setOf(t, info, records), "b": setOf(t, info, records)}
	m := metrics.New()
	rd := reads.New(c, reads.Options{Metrics: m.Server, Logger: slog.New(slog.DiscardHandler)})
	defer rd.Stop()
	read := func(db string, counted float64) {
		t.Helper()
		r := rd.NewRead()
		defer r.Release()
		r.Begin(time.Now())
		if got := r.Do(&reads.Query{DB: []byte(db), Key: []byte("k")}); got != reads.Found {
			t.Errorf("%s: %d", db, got)
		}
		r.Done(tracing.Answer{Status: 200})
		if n := requests(t, m); n != counted {
			t.Errorf("%s: %v requests are counted, not %v", db, n, counted)
		}
	}
	a := c["a"]
	read("a", 1)
	delete(c, "a")
	read("b", 1)
	c["a"] = a
	read("a", 2)
}

// A status that only a condition can cause is not an answer to an unconditional request.
func TestPeerAnswersWhatWasNotAsked(t *testing.T) {
	set := setOf(t, version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 1, Following: peersOnly{}}, nil)
	for _, status := range []int{206, 304, 412, 416} {
		rd := reads.New(catalog{"db": set}, reads.Options{Proxy: answers(status, "x"), Logger: slog.New(slog.DiscardHandler)})
		r := rd.NewRead()
		r.Begin(time.Now())
		if got := r.Do(&reads.Query{DB: []byte("db"), Key: []byte("k")}); got != reads.Unreachable {
			t.Errorf("status %d: %d", status, got)
		}
		r.Release()
		rd.Stop()
	}
}

// A local value is read at any place, as http.ServeContent does.
func TestBodySeeks(t *testing.T) {
	large := strings.Repeat("0123456789", 30<<10)
	set := setOf(t, version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 1, Following: version.Solo{}}, map[string]string{"large": large, "small": large[:100]})
	rd := reads.New(catalog{"db": set}, reads.Options{})
	defer rd.Stop()
	for key, value := range map[string]string{"large": large, "small": large[:100]} {
		r := rd.NewRead()
		r.Begin(time.Now())
		if got := r.Do(&reads.Query{DB: []byte("db"), Key: []byte(key)}); got != reads.Found || (r.Bytes == nil) != (key == "large") {
			t.Fatalf("%s: %d, %d bytes", key, got, len(r.Bytes))
		}
		for _, at := range []int64{0, 10, 99, 5, int64(len(value)) - 1, int64(len(value)), 0} {
			if n, err := r.Body().Seek(at-int64(len(value)), io.SeekEnd); n != at || err != nil {
				t.Fatalf("%s: seeking to %d: %d, %v", key, at, n, err)
			}
			p := make([]byte, 70<<10)
			n, err := io.ReadFull(r.Body(), p)
			if want := value[at:min(at+int64(len(p)), int64(len(value)))]; string(p[:n]) != want {
				t.Errorf("%s from %d: %d bytes, want %d; %v", key, at, n, len(want), err)
			}
		}
		if _, err := r.Body().Seek(1, io.SeekEnd); err == nil {
			t.Errorf("%s: seeking behind the end", key)
		}
		r.Release()
	}
}

// Damage of a large value is reported, unless its block has been replaced since the lookup.
func TestDamageOfAReplacedBlock(t *testing.T) {
	records := map[string]string{"large": strings.Repeat("0123456789", 30<<10)}
	for _, replaced := range []bool{false, true} {
		set := setOf(t, version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 1, Following: version.Solo{}}, records)
		rd := reads.New(catalog{"db": set}, reads.Options{Logger: slog.New(slog.DiscardHandler)})
		r := rd.NewRead()
		r.Begin(time.Now())
		if got := r.Do(&reads.Query{DB: []byte("db"), Key: []byte("large")}); got != reads.Found {
			t.Fatal(got)
		}
		err := set.EachBlock(func(_ *version.Handle, _ int, b version.Block) error {
			return os.Truncate(b.(*blocks.Reader).Name(), 100)
		})
		expect.NoError(t, err)
		if replaced {
			expect.NoError(t, set.Version(contents.In("v1")).Put(0, versions.Open(t, 0, 1, records)))
		}
		if _, err := io.Copy(io.Discard, r.Body()); !errors.Is(err, blocks.ErrCorrupt) || r.Body().Outcome != reads.Unreadable {
			t.Errorf("reading the rest: %v, %d", err, r.Body().Outcome)
		}
		if n := len(set.Corruptions()); n == 0 != replaced {
			t.Errorf("replaced %v: %d reports", replaced, n)
		}
		r.Release()
		rd.Stop()
	}
}

// A large value whose block or node fails in the middle is read on from other nodes, but not the part of one, nor for a client that is too slow.
func TestBodyGoesOn(t *testing.T) {
	random := make([]byte, 400<<10)
	rand.NewChaCha8([32]byte{}).Read(random) //nolint:errcheck // it never fails
	large := string(random)
	broken := errors.New("reset by peer")
	for name, test := range map[string]struct {
		here   bool
		status int
		err    error // of the first node
		again  int   // answers that break off
		want   reads.Outcome
	}{
		"a damaged block":             {true, 200, broken, 1, reads.Found},
		"a node":                      {false, 200, broken, 3, reads.Found},
		"too many nodes":              {false, 200, broken, 4, reads.Unreachable},
		"a damaged block and no node": {true, 200, broken, 4, reads.Unreadable},
		"a part":                      {false, 206, broken, 1, reads.Unreachable},
		"a client that is too slow":   {false, 200, fmt.Errorf("peer: %w", proxy.ErrSlow), 1, reads.TooSlow},
	} {
		t.Run(name, func(t *testing.T) {
			left, broke := test.again, ""
			fetch := proxyFunc(func(q *proxy.Query) (*proxy.Answer, error) {
				if left == test.again-1 && slices.Contains(q.Peers, broke) {
					t.Error("the node that has broken off is asked again")
				}
				broke = q.Peers[0]
				a := &proxy.Answer{Peer: q.Peers[0], Status: test.status, Length: int64(len(large)), Body: io.NopCloser(strings.NewReader(large))}
				if left--; left >= 0 {
					a.Body = io.NopCloser(io.MultiReader(strings.NewReader(large[:(test.again-left)<<16]), iotest.ErrReader(test.err)))
				}
				return a, nil
			})
			info := version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 1, Following: peersOnly{}}
			set := setOf(t, info, nil)
			if test.here {
				set = setOf(t, info, map[string]string{"k": large})
			}
			rd := reads.New(catalog{"db": set}, reads.Options{Proxy: fetch, Logger: slog.New(slog.DiscardHandler)})
			defer rd.Stop()
			r := rd.NewRead()
			r.Begin(time.Now())
			defer r.Release()
			condition := []proxy.Field{{Name: "If-None-Match", Value: []byte(`"x"`)}}
			if got := r.Do(&reads.Query{DB: []byte("db"), Key: []byte("k"), Fields: condition}); got != reads.Found || r.Length != int64(len(large)) {
				t.Fatalf("%d, %d bytes", got, r.Length)
			}
			first := make([]byte, 10)
			if _, err := io.ReadFull(r.Body(), first); err != nil {
				t.Fatal(err)
			}
			if test.here {
				err := set.EachBlock(func(_ *version.Handle, _ int, b version.Block) error {
					return os.Truncate(b.(*blocks.Reader).Name(), 100)
				})
				expect.NoError(t, err)
			}
			rest, err := io.ReadAll(r.Body())
			if o := r.Body().Outcome; o != test.want || (err == nil) != (o == reads.Found) || err == nil && string(first)+string(rest) != large || !strings.HasPrefix(large, string(first)+string(rest)) {
				t.Errorf("outcome %d after %d bytes: %v", o, len(rest), err)
			}
		})
	}
}

// An explanation is made by the read itself.
func TestExplain(t *testing.T) {
	c := catalog{"here": setOf(t, version.Info{DB: "here", Content: contents.Of("v1"), Partitions: 1, Following: peersOnly{}}, map[string]string{"k": "value"}), "none": version.NewSet("none")}
	rd := reads.New(c, reads.Options{Name: "me:1"})
	defer rd.Stop()
	r := rd.NewRead()
	for query, want := range map[string]string{"here/k": "found local [me:1 p:1 q:2] 5", "here/absent": "absent local [me:1 p:1 q:2] 0", "none/k": "nothing"} {
		db, key, _ := strings.Cut(query, "/")
		r.Begin(time.Now())
		r.Timed = true
		got := "nothing"
		if e := r.Explain(r.Do(&reads.Query{DB: []byte(db), Key: []byte(key), Head: true})); e != nil {
			got = fmt.Sprintf("%s %s %v %d", map[bool]string{true: "found", false: "absent"}[e.Found], e.AnsweredBy, e.Replicas, e.Size)
			if e.Microseconds.Total <= 0 || e.DB != "here" || e.Version != "v1" || e.Key != key {
				t.Errorf("%s: %+v", query, e)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		r.Done(tracing.Answer{})
		r.Release()
	}
}
