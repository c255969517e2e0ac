package client_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sequins/client"
	"sequins/test/expect"
)

// world is a cluster on the fake clock of synctest: each node answers after a time of its own.
type world struct {
	mu     sync.Mutex
	delays map[string]func() time.Duration // by address; negative: never
	asked  map[string]int
	zones  string // a field of the map
}

// RoundTrip implements http.RoundTripper.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.RequestURI() == "/db/?partitions" {
		return respond(r, `{"db":"db","version":"v1","partitioner":"string","partitions":1,"scheme":"http","nodes":["a:1","b:1","c:1"],`+w.zones+`"replicas":[[0,1,2]]}`), nil
	}
	w.mu.Lock()
	w.asked[r.Host]++
	delay := w.delays[r.Host]()
	w.mu.Unlock()
	if delay < 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(delay):
		return respond(r, "value of "+r.Host), nil
	}
}

func respond(r *http.Request, body string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"X-Sequins-Version": {"v1"}},
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

// newWorld returns a world of three nodes that answer within some milliseconds, and a client that has its map.
func newWorld(t *testing.T, o client.Options) (*world, *client.Client) {
	t.Helper()
	quick := func() time.Duration { return time.Millisecond + rand.N(4*time.Millisecond) }
	w := &world{delays: map[string]func() time.Duration{"a:1": quick, "b:1": quick, "c:1": quick}, asked: map[string]int{}, zones: `"zones":["x","y",""],`}
	o.Addrs, o.Transport = []string{"a:1"}, w
	c, err := client.New(o)
	expect.NoError(t, err)
	for range 500 { // it learns how long requests take
		mustGet(t, c)
	}
	return w, c
}

// mustGet reads a key, and returns how long that took.
func mustGet(t *testing.T, c *client.Client) time.Duration {
	t.Helper()
	began := time.Now()
	v, err := c.Get(t.Context(), "db", []byte("k"))
	if err != nil || !strings.HasPrefix(string(v.Data), "value of ") {
		t.Fatalf("%q, %v", v.Data, err)
	}
	return time.Since(began)
}

// total returns the requests that were sent.
func (w *world) total() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, each := range w.asked {
		n += each
	}
	return n
}

func (w *world) set(addr string, delay func() time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delays[addr] = delay
}

// A request that is late now and then does not make its call late, and the extra requests stay within the budget.
func TestHedging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, client.Options{})
		defer c.Close()
		for _, addr := range []string{"a:1", "b:1", "c:1"} {
			w.set(addr, func() time.Duration {
				if rand.IntN(50) == 0 {
					return 500 * time.Millisecond
				}
				return time.Millisecond + rand.N(4*time.Millisecond)
			})
		}
		before, late := w.total(), 0
		const calls = 5000
		for range calls {
			if mustGet(t, c) > 100*time.Millisecond {
				late++
			}
		}
		extra := w.total() - before - calls
		if s := c.Stats(); s.Calls != calls+500 || s.Attempts != int64(w.total()) || s.Hedged < int64(extra) || s.Hedged > s.Attempts-s.Calls {
			t.Errorf("%+v, and %d requests", s, w.total())
		}
		if late > calls/500 || extra > calls/10+10 || extra < calls/100 {
			t.Errorf("%d calls: %d late, %d extra requests", calls, late, extra)
		}
	})
}

// When all nodes become slow, the budget holds: no flood of hedged requests.
func TestHedgeBudget(t *testing.T) {
	for _, budget := range []float64{-1, 0.02, 0.1} {
		synctest.Test(t, func(t *testing.T) {
			w, c := newWorld(t, client.Options{HedgeBudget: budget})
			defer c.Close()
			for addr := range w.delays {
				w.set(addr, func() time.Duration { return 100*time.Millisecond + rand.N(time.Second/2) })
			}
			before := w.total()
			const calls = 1000
			for range calls {
				mustGet(t, c)
			}
			if extra := w.total() - before - calls; float64(extra) > max(budget, 0)*calls+10 || budget < 0 && extra > 0 {
				t.Errorf("budget %v: %d extra requests of %d", budget, extra, calls)
			}
		})
	}
}

// A node that never answers is soon asked last, and asked again when it has recovered.
func TestHungNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, client.Options{})
		defer c.Close()
		w.set("b:1", func() time.Duration { return -1 })
		slow := 0
		const calls = 1000
		for range calls {
			if mustGet(t, c) > 100*time.Millisecond {
				slow++
			}
			time.Sleep(time.Millisecond)
		}
		if slow > 10 {
			t.Errorf("%d of %d calls were slow", slow, calls)
		}
		w.set("b:1", func() time.Duration { return time.Millisecond })
		time.Sleep(time.Minute)
		before := w.asked["b:1"]
		for range calls {
			mustGet(t, c)
		}
		if n := w.asked["b:1"] - before; n < calls/5 {
			t.Errorf("after its recovery it is asked %d times of %d", n, calls)
		}
	})
}

// A node that never answers is soon asked last, also if the calls end by their contexts before AttemptTimeout and are not
// hedged.
func TestHungNodeAndShortContexts(t *testing.T) {
	for _, budget := range []float64{-1, 0.02, 0.1} {
		synctest.Test(t, func(t *testing.T) {
			w, c := newWorld(t, client.Options{HedgeBudget: budget})
			defer c.Close()
			w.set("b:1", func() time.Duration { return -1 })
			failed := 0
			const calls = 1000
			for range calls {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				if _, err := c.Get(ctx, "db", []byte("k")); err != nil {
					failed++
				}
				cancel()
				time.Sleep(10 * time.Millisecond)
			}
			if failed > 10 {
				t.Errorf("budget %v: %d of %d calls fail", budget, failed, calls)
			}
		})
	}
}

// That callers give up is not counted against the nodes.
func TestCanceledCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, client.Options{HedgeBudget: -1})
		defer c.Close()
		w.set("b:1", func() time.Duration { return 300 * time.Millisecond })
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(200*time.Millisecond, cancel)
			c.Get(ctx, "db", []byte("k")) //nolint:errcheck // canceled, if it asks the slow node
			cancel()
		}
		before := w.asked["b:1"]
		for range 300 {
			mustGet(t, c)
		}
		if n := w.asked["b:1"] - before; n < 50 {
			t.Errorf("the node is asked %d times of 300", n)
		}
	})
}

// A node that begins to answer and sends too slowly for the deadline is soon asked last.
func TestDribblingNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t, client.Options{})
		c, err := client.New(client.Options{Addrs: []string{"a:1"}, Transport: &largeValues{world: w, host: "b:1", pause: 900 * time.Millisecond}})
		expect.NoError(t, err)
		defer c.Close()
		failed := 0
		const calls = 300
		for range calls {
			if _, err := c.Get(t.Context(), "db", []byte("k")); err != nil {
				failed++
			}
		}
		if failed > 10 {
			t.Errorf("%d of %d calls fail", failed, calls)
		}
	})
}

// Every node hangs: the call ends with its context, and not later.
func TestAllHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, client.Options{})
		defer c.Close()
		for addr := range w.delays {
			w.set(addr, func() time.Duration { return -1 })
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err := c.Get(ctx, "db", []byte("k"))
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, client.ErrUnavailable) || took != 1500*time.Millisecond {
			t.Errorf("after %v: %v", took, err)
		}
		began = time.Now()
		if _, err = c.Get(t.Context(), "db", []byte("k")); err == nil || time.Since(began) > 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// A request that is busy receiving its answer is not hedged.
func TestNoHedgeForLargeValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, client.Options{})
		defer c.Close()
		before := w.total()
		large := &largeValues{world: w, pause: 200 * time.Millisecond}
		c2, err := client.New(client.Options{Addrs: []string{"a:1"}, Transport: large})
		expect.NoError(t, err)
		defer c2.Close()
		const calls = 50
		for range calls {
			mustGet(t, c2)
		}
		if extra := w.total() - before - calls; extra > calls/10 {
			t.Errorf("%d extra requests", extra)
		}
	})
}

// largeValues sends values byte by byte, with a pause before each.
type largeValues struct {
	*world
	host  string // only those of this node, if it is not ""
	pause time.Duration
}

// RoundTrip implements http.RoundTripper.
func (l *largeValues) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.world.RoundTrip(r)
	if err == nil && !strings.Contains(r.URL.RequestURI(), "?") && (l.host == "" || l.host == r.Host) {
		resp.Body = io.NopCloser(&slowly{Reader: resp.Body, ctx: r.Context(), pause: l.pause})
	}
	return resp, err
}

// slowly reads one byte after each pause.
type slowly struct {
	io.Reader
	ctx   context.Context
	pause time.Duration
}

// Read implements io.Reader.
func (s *slowly) Read(p []byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.pause):
		return s.Reader.Read(p[:min(1, len(p))])
	}
}
