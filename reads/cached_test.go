package reads_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sequins/internal/content"
	"sequins/internal/wire"
	"sequins/observe/metrics"
	"sequins/observe/tracing"
	"sequins/proxy"
	"sequins/reads"
	"sequins/shard"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/version"
)

// source is another node that has every version. The value of a key follows from the version, its content and the key.
type source struct{ asked atomic.Int64 }

// valueIn returns the value of a key, nil if it is absent: up to some KiB, and for a few keys more than is cached.
func valueIn(name, code, key string) []byte {
	h := fnv.New64a()
	fmt.Fprint(h, name, code, key)
	n := h.Sum64()
	size := n >> 8 % 3000
	switch n % 16 {
	case 0, 1:
		return nil
	case 2:
		size = 60<<10 + n>>8%(8<<10)
	}
	return append([]byte(fmt.Sprint(name, code, key, " ")), make([]byte, size)...)
}

// Fetch fails, leaves out the content, or answers as a node does.
func (s *source) Fetch(_ context.Context, q *proxy.Query) (*proxy.Answer, error) {
	s.asked.Add(1)
	code := string(askedContent(q))
	a := &proxy.Answer{Peer: "a:1", Status: http.StatusOK, Header: proxy.Header{Content: []byte(code)}}
	switch rand.IntN(20) {
	case 0:
		return nil, proxy.ErrNoPeers
	case 1:
		a.Header.Content = nil
	}
	var body []byte
	if q.Body != nil {
		body = batchAnswer(q.Body, q.Version, code)
	} else if body = valueIn(q.Version, code, string(q.Path[len("/db/"):])); body == nil {
		a.Status = http.StatusNotFound
	}
	a.Length = int64(len(body))
	if q.Head {
		body = []byte{}
	}
	if len(body) <= 64<<10 {
		a.Value = body
	}
	a.Body = io.NopCloser(bytes.NewReader(body))
	return a, nil
}

func batchAnswer(keys []byte, name, code string) (body []byte) {
	for b := keys; len(b) > 0; {
		n := binary.BigEndian.Uint32(b)
		value := valueIn(name, code, string(b[4:4+n]))
		b = b[4+n:]
		if value == nil {
			body = binary.BigEndian.AppendUint32(body, wire.Absent)
			continue
		}
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(value))), value...)
	}
	return body
}

const cacheSize = 2 << 20

// elsewhere returns a reader of a db that is on another node, with a cache, and the db.
func elsewhere(t *testing.T, p reads.Proxy, o reads.Options) (*reads.Reader, *version.Set) {
	t.Helper()
	set := version.NewSet("db")
	o.Proxy, o.CacheBytes, o.Logger = p, cacheSize, slog.New(slog.DiscardHandler)
	rd := reads.New(catalog{"db": set}, o)
	t.Cleanup(rd.Stop)
	return rd, set
}

func switchTo(t *testing.T, set *version.Set, c content.Content) {
	t.Helper()
	set.Prepare(version.New(version.Info{DB: "db", Content: c, Partitions: 3, Partitioner: shard.String, Following: peersOnly{}}))
	if err := set.Activate(c.Input); err != nil {
		t.Error(err)
	}
}

func remove(t *testing.T, set *version.Set, c content.Content) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if v := set.Remove(c.Input); v != nil {
		if err := v.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// While versions, and contents of one version, replace each other, every read, by any of many clients, has the value of the version that it
// names, from the cache or not.
func TestCacheModel(t *testing.T) {
	m := metrics.New().Server
	p := new(source)
	rd, set := elsewhere(t, p, reads.Options{Metrics: m})
	switchTo(t, set, contents.Of("v00"))
	var clients, switches sync.WaitGroup
	var done atomic.Bool
	for g := range 4 {
		clients.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 2))
			r := rd.NewRead()
			for range 4000 {
				readOne(t, rd, &r, rnd)
			}
		})
	}
	switches.Go(func() { switchVersions(t, set, p, &done) })
	clients.Wait()
	done.Store(true)
	switches.Wait()
	if hits, misses := m.DB("db").CacheCounts(); hits < 5000 || misses < 1000 {
		t.Errorf("%d hits, %d misses", hits, misses)
	}
}

// switchVersions goes on to another version, or to another content of the same, after every few requests to other nodes.
func switchVersions(t *testing.T, set *version.Set, p *source, done *atomic.Bool) {
	served := []content.Content{contents.Of("v00")}
	for i := 1; !done.Load(); i++ {
		target := p.asked.Load() + 100
		expect.Eventually(t, "requests to other nodes", func() bool { return done.Load() || p.asked.Load() >= target })
		name := fmt.Sprintf("v%02d", i)
		if i%3 == 1 {
			name = served[len(served)-1].Name
		}
		next := contents.Of(name, fmt.Sprint(i))
		switchTo(t, set, next)
		if served = append(served, next); len(served) > 2 {
			remove(t, set, served[0])
			served = served[1:]
		}
	}
}

// readOne reads a key or some, as one client of many kinds.
func readOne(t *testing.T, rd *reads.Reader, r *reads.Read, rnd *rand.Rand) {
	key := func() string { return fmt.Sprint(int(rnd.ExpFloat64() * 30)) }
	r.Begin(time.Now())
	defer r.Release()
	q := &reads.Query{DB: []byte("db"), Head: rnd.IntN(10) == 0}
	if rnd.IntN(10) == 0 {
		q.Exact = []byte(fmt.Sprintf("v%02d", rnd.IntN(10)))
	}
	if rnd.IntN(5) == 0 {
		keys := make([][]byte, rnd.IntN(20))
		for i := range keys {
			keys[i] = []byte(key())
		}
		if r.DoBatch(q, keys) == reads.Found {
			for i, k := range keys {
				if want := valueIn(string(r.Version), string(r.Content), string(k)); !bytes.Equal(r.Values[i], want) || (r.Values[i] == nil) != (want == nil) {
					t.Errorf("%s in version %s: %.20q, want %.20q", k, r.Version, r.Values[i], want)
				}
			}
		}
		return
	}
	q.Key = []byte(key())
	o := r.Do(q)
	want := valueIn(string(r.Version), string(r.Content), string(q.Key))
	switch {
	case o == reads.Unreachable || o == reads.Gone && q.Exact != nil:
		return
	case o == reads.Absent && want == nil:
		return
	case o != reads.Found || want == nil || r.Length != int64(len(want)):
		t.Errorf("%s in version %s: outcome %d, %d bytes; want %.20q", q.Key, r.Version, o, r.Length, want)
		return
	}
	if got, err := io.ReadAll(r.Body()); err != nil || !bytes.Equal(got, want) && !q.Head {
		t.Errorf("%s in version %s: %.20q, %v; want %.20q", q.Key, r.Version, got, err, want)
	}
	r.Done(tracing.Answer{})
}

// readKey reads a key of db.
func readKey(r *reads.Read, key string) reads.Outcome {
	r.Begin(time.Now())
	defer r.Release()
	return r.Do(&reads.Query{DB: []byte("db"), Key: []byte(key)})
}
