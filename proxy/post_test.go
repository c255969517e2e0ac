package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// received collects the requests of a peer.
type received struct {
	mu  sync.Mutex
	all []string
}

// echoes answers with the request's method, query and body, which it collects.
func (r *received) echoes(c net.Conn, req *http.Request) bool {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return false
	}
	got := req.Method + " " + req.URL.RawQuery + " " + req.Header.Get("Content-Type") + " " + string(body)
	r.mu.Lock()
	r.all = append(r.all, got)
	r.mu.Unlock()
	_, err = io.WriteString(c, answer(200, got))
	return err == nil
}

// A query with a body is sent as POST, on a new connection, on an idle one, and again where an idle one turns out to be
// closed. The connection is used again after it.
func TestPost(t *testing.T) {
	var seen received
	p := listen(t, seen.echoes)
	c := client(t, Options{Timeout: ample})
	for i, body := range []string{"one", strings.Repeat("x", 3*readBuffer), "", "after"} {
		if i == 3 {
			p.cut(false)
		}
		got, err := fetch(c, &Query{Peers: []string{p.addr}, Path: []byte("/db"), Version: "v1", Params: []byte("a=1&b=%20"), Body: []byte(body)})
		if want := "POST proxy=v1&a=1&b=%20 application/octet-stream " + body; err != nil || got.body != want {
			t.Errorf("%.40q, %v; want %.40q", got.body, err, want)
		}
	}
	if n := p.accepted.Load(); n != 2 {
		t.Errorf("%d connections for requests in a row, one of them cut, want 2", n)
	}
	if got, err := fetch(c, &Query{Peers: []string{p.addr}, Path: []byte("/db/k"), Version: "v1"}); err != nil || got.body != "GET proxy=v1  " {
		t.Errorf("a GET after them: %q, %v", got.body, err)
	}
	_, err := c.Fetch(context.Background(), &Query{Peers: []string{p.addr}, Path: []byte("/db"), Version: "v1", Params: []byte("a b")})
	if !errors.Is(err, errQuery) {
		t.Errorf("a parameter with a space: %v", err)
	}
}

// Late peers get the same request, with its body.
func TestPostStages(t *testing.T) {
	var seen received
	inWorld(t, 2, func(w *world) {
		w.peers[0].set(after(10*stageTime, seen.echoes))
		w.peers[1].set(after(stageTime/2, seen.echoes))
		for range 10 {
			begun := time.Now()
			got, err := fetch(w.Client, &Query{Peers: []string{"a", "b"}, Path: []byte("/db"), Version: "v1", Body: []byte("keys")})
			if err != nil || got.peer != "b" || got.body != "POST proxy=v1 application/octet-stream keys" || time.Since(begun) > 2*stageTime {
				t.Errorf("%+v, %v after %v", got, err, time.Since(begun))
			}
		}
	})
	for _, r := range seen.all {
		if r != "POST proxy=v1 application/octet-stream keys" {
			t.Errorf("a peer was sent %q", r)
		}
	}
}
