package balance

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sequins/test/expect"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a node that answers every request with its number.
type fake struct {
	*httptest.Server
	ready, asked atomic.Int64
}

func newFake(t *testing.T, number int) *fake {
	f := &fake{}
	f.ready.Store(http.StatusOK)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			w.WriteHeader(int(f.ready.Load()))
		case "/bad":
			w.WriteHeader(http.StatusBadGateway)
		case "/cut":
			panic(http.ErrAbortHandler)
		default:
			f.asked.Add(1)
			fmt.Fprint(w, number)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) addr() string { return strings.TrimPrefix(f.URL, "http://") }

// A node that is not ready is not asked, and is asked again when it is.
func TestFollowsReadyz(t *testing.T) {
	a, b := newFake(t, 0), newFake(t, 1)
	c := Start(Options{Addrs: []string{a.addr(), b.addr()}, Rate: 1000, Probe: time.Millisecond,
		Target: func(int) string { return "/" },
		Check: func(_ int, a Answer) error {
			if string(a.Body) != fmt.Sprint(a.Node) {
				return errors.New("an answer of another node")
			}
			return nil
		}})
	expect.Eventually(t, "both are asked", func() bool { return a.asked.Load() > 0 && b.asked.Load() > 0 })
	b.ready.Store(http.StatusServiceUnavailable)
	expect.Eventually(t, "b is out", func() bool { return !c.Ready(1) })
	since := c.Now()
	before := a.asked.Load()
	expect.Eventually(t, "a is asked", func() bool { return a.asked.Load() > before+10 })
	until := c.Now()
	b.ready.Store(http.StatusOK)
	after := b.asked.Load()
	expect.Eventually(t, "b is asked again", func() bool { return b.asked.Load() > after+10 })
	requests := c.Stop()
	for _, r := range requests {
		if r.Node == 1 && r.Sent > since+time.Second && r.Sent < until {
			t.Errorf("sent to a node that is not ready: %+v", r)
		}
	}
	if s := Summarize(requests); s.Failures() > 0 || s.Requests < 20 || s.P99 == 0 || s.Longest < s.P99 {
		t.Errorf("%+v", s)
	}
}

// Every kind of failure is counted, and nothing is sent twice.
func TestFailures(t *testing.T) {
	a := newFake(t, 0)
	targets := []string{"/", "/bad", "/cut", "/wrong"}
	c := Start(Options{Addrs: []string{a.addr()}, Rate: 1000, Probe: time.Millisecond,
		Target: func(n int) string { return targets[n%len(targets)] },
		Check: func(n int, _ Answer) error {
			if n%len(targets) == 3 {
				return errors.New("wrong")
			}
			return nil
		}})
	expect.Eventually(t, "it is asked", func() bool { return a.asked.Load() > 20 })
	a.ready.Store(http.StatusServiceUnavailable)
	expect.Eventually(t, "it is out", func() bool { return !c.Ready(0) })
	since := c.Now()
	expect.Eventually(t, "some time has passed", func() bool { return c.Now() > since+20*time.Millisecond })
	requests := c.Stop()
	s := Summarize(requests)
	if s.Statuses == 0 || s.Connections == 0 || s.Wrong == 0 || s.NoneReady == 0 || s.First == nil {
		t.Errorf("%+v", s)
	}
	answered := 0
	for _, r := range requests {
		if r.Code == http.StatusOK {
			answered++
		}
	}
	if int64(answered) != a.asked.Load() {
		t.Errorf("%d answers to %d requests", answered, a.asked.Load())
	}
}

func TestSummarize(t *testing.T) {
	ms := time.Millisecond
	failed := errors.New("reset")
	s := Summarize([]Request{
		{Due: 30 * ms, End: 31 * ms, Code: 200},
		{Due: 0, End: 5 * ms, Code: 200},
		{Due: 10 * ms, End: 11 * ms, Err: failed},
		{Due: 20 * ms, End: 20 * ms, Node: -1, Err: errNoneReady},
	})
	want := Summary{Requests: 4, Connections: 1, NoneReady: 1, First: failed, P99: 5 * ms, Longest: 21 * ms}
	if s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}
