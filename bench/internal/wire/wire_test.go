package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

func TestParsers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX: y\r\n\r\nabc"
	type result struct {
		Found  bool
		Body   string
		Length int
		Err    bool
	}
	tests := []struct {
		parse Parser
		in    string
		want  result
	}{
		{HTTP, ok, result{true, "abc", len(ok), false}},
		{HTTP, ok + "HTTP", result{true, "abc", len(ok), false}},
		{HTTP, ok[:len(ok)-1], result{}},
		{HTTP, ok[:20], result{}},
		{HTTP, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", result{false, "", 45, false}},
		{HTTP, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", result{Err: true}},
		{HTTP, "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", result{true, "", 0, true}},
		{HTTP, "HTTP/1.1 200 OK\r\n\r\n", result{true, "", 0, true}},
		{Redis, "$3\r\nabc\r\n", result{true, "abc", 9, false}},
		{Redis, "$3\r\nabc\r", result{}},
		{Redis, "$-1\r\n", result{false, "", 5, false}},
		{Redis, "-ERR\r\n", result{Err: true}},
		{Redis, "$-2\r\n", result{Err: true}},
	}
	for _, test := range tests {
		r, n, err := test.parse([]byte(test.in))
		got := result{r.Found, string(r.Body), n, err != nil}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q: %s", test.in, diff)
		}
	}
}

// serve answers /found/… with a body, anything else with 404, on an address of its own.
func serve(t *testing.T, delay func()) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		delay()
		if !strings.HasPrefix(r.URL.Path, "/found/") {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, strings.TrimPrefix(r.URL.Path, "/found/"))
	})}
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(ln) }()
	t.Cleanup(func() { srv.Close(); <-done })
	return ln.Addr().String()
}

func requests() [][]byte {
	var all [][]byte
	for i := range 100 {
		all = append(all, Get(fmt.Sprintf("/found/%d", i)))
	}
	return append(all, Get("/absent"))
}

func check(i int, r Reply) error {
	if r.Found != (i < 100) || r.Found && string(r.Body) != fmt.Sprint(i) {
		return errors.New("wrong answer")
	}
	return nil
}

func TestLoops(t *testing.T) {
	addr := serve(t, func() {})
	for _, rate := range []float64{0, 500} {
		seconds := 0
		l := Load{Addr: addr, Conns: 4, Requests: requests(), Parse: HTTP, Check: check, Duration: 1200 * time.Millisecond, Rate: rate,
			Second: func(int, *Times) { seconds++ }}
		r, err := Run(context.Background(), l)
		if err != nil || r.Failures != 0 || seconds != 1 {
			t.Errorf("rate %v: %v, %d failures, the first %v, %d whole seconds", rate, err, r.Failures, r.Failure, seconds)
		}
		if n := r.Times.Count(); rate > 0 && n != 600 && n != 599 || n < 500 {
			t.Errorf("rate %v: %d answers in 1.2 s", rate, n)
		}
		if r.Times.Quantile(0.5) <= 0 || r.Times.Quantile(0.5) > r.Times.Quantile(0.99) {
			t.Errorf("rate %v: median %v, p99 %v", rate, r.Times.Quantile(0.5), r.Times.Quantile(0.99))
		}
	}
}

// Where a server answers ten requests a second and a hundred are due, those that wait are late from when
// they were due.
func TestOpenLoopCountsWaiting(t *testing.T) {
	addr := serve(t, func() { time.Sleep(100 * time.Millisecond) })
	r, err := Run(context.Background(), Load{Addr: addr, Conns: 1, Requests: requests(), Parse: HTTP, Check: check, Duration: time.Second / 5, Rate: 100})
	if err != nil || r.Failures != 0 {
		t.Fatal(err, r.Failures, r.Failure)
	}
	if last := r.Times.Quantile(1); last < time.Second {
		t.Errorf("the last of %d requests took %v", r.Times.Count(), last)
	}
}

func TestFailures(t *testing.T) {
	addr := serve(t, func() {})
	wrong := func(int, Reply) error { return errors.New("no") }
	r, err := Run(context.Background(), Load{Addr: addr, Conns: 1, Requests: requests(), Parse: HTTP, Check: wrong, Duration: 50 * time.Millisecond})
	if err != nil || r.Failures == 0 || r.Failure == nil {
		t.Errorf("%v, %d failures, the first %v", err, r.Failures, r.Failure)
	}
	if _, err := Run(context.Background(), Load{Addr: "127.0.0.1:1", Conns: 1}); err == nil {
		t.Error("connected to nobody")
	}
}
