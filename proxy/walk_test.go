package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Peers that answer, hang, fail, answer late and break off, at random, and
// connections that are cut or cannot be made: an answer is always the right one,
// and nothing takes longer than it may. In every other walk one peer always
// answers: there is an answer then, after two stages at most.
func TestRandomWalk(t *testing.T) {
	const least, most = 6, 100
	want := []string{"1 absent", "1 cancelled", "1 error", "1 ok", "1 timeout", "2 absent", "2 cancelled", "2 error", "2 ok", "2 timeout",
		"3+ absent", "3+ cancelled", "3+ error", "3+ ok", "3+ timeout"}
	seen := map[string]int{}
	// A seed does not say who of the callers draws first, so the rarest may need some more walks.
	for seed := uint64(0); seed < least || seed < most && len(seen) < len(want) && !t.Failed(); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { walk(t, seed, seen) })
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(seen))); diff != "" {
		t.Errorf("what has happened (-want +got):\n%s", diff)
	}
}

func walk(t *testing.T, seed uint64, seen map[string]int) {
	inWorld(t, 3, func(w *world) {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(seed, seed))
		draw := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return rng.IntN(n)
		}
		unreliable, worst := w.peers, raceTime
		for _, p := range w.peers {
			p.set(func(c net.Conn, req *http.Request) bool { return anything(draw, c, req) })
		}
		if seed%2 == 1 {
			unreliable, worst = w.peers[:2], 2*stageTime
			w.peers[2].set(func(c net.Conn, req *http.Request) bool {
				return says(answer(200, bodyOf(req.URL.Path, draw(maxWhole))))(c, req)
			})
		}
		var callers sync.WaitGroup
		for caller := range 10 {
			callers.Go(func() {
				for i := range 40 {
					w.step(fmt.Sprintf("/db/%d-%d", caller, i), worst, draw)
				}
			})
		}
		for range 30 {
			time.Sleep(time.Duration(draw(1000)) * time.Millisecond)
			p := unreliable[draw(len(unreliable))]
			switch draw(4) {
			case 0:
				p.cut(false)
			case 1:
				p.down.Store(!p.down.Load())
			case 2:
				p.lag.Store(int64(draw(2)) * int64(draw(2000)) * int64(time.Millisecond))
			}
		}
		callers.Wait()
		for _, p := range w.peers {
			p.down.Store(false)
			p.lag.Store(0)
			p.set(says(answer(200, p.addr)))
		}
		time.Sleep(10 * time.Second)
		for range 10 {
			if _, err := w.ask(0); err != nil {
				t.Error(err)
			}
		}
		for labels, n := range w.counted() {
			seen[labels] += n
		}
	})
}

// step asks once, and holds the answer against the path. In a walk whose worst is
// less than the time of a race there has to be one.
func (w *world) step(path string, worst time.Duration, draw func(int) int) {
	q := query(w.peers...)
	q.Path = []byte(path)
	begun := time.Now()
	a, err := w.Fetch(context.Background(), q)
	if d := time.Since(begun); d > worst {
		w.Errorf("%s took %v", path, d)
	}
	if err != nil {
		if worst < raceTime || !errors.Is(err, ErrNoPeers) && !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("%s: %v", path, err)
		}
		return
	}
	defer a.Body.Close()
	if draw(10) == 0 {
		return // without reading it
	}
	body, err := io.ReadAll(a.Body)
	switch {
	case a.Status == 404 && string(body) == "none" && err == nil:
	case a.Status != 200 || string(body) != bodyOf(path, len(body)):
		w.Errorf("%s: %d, %.50q", path, a.Status, body)
	case err == nil && int64(len(body)) != a.Length:
		w.Errorf("%s: %d bytes of %d and no error", path, len(body), a.Length)
	case err != nil && a.Value != nil:
		w.Errorf("%s: a small answer that is not whole: %v", path, err)
	}
}

// bodyOf is what the value of a path is, n bytes of it.
func bodyOf(path string, n int) string {
	return strings.Repeat(path+" ", n/len(path)+1)[:n]
}

// anything answers somehow. What it says is right, as long as it lasts.
func anything(draw func(int) int, c net.Conn, req *http.Request) bool {
	size := []int{0, 5, 1000, 8 << 10, 60 << 10, 64<<10 + 1, 80 << 10}[draw(7)]
	raw := answer(200, bodyOf(req.URL.Path, size))
	pause := time.Duration(draw(300)) * time.Millisecond
	switch draw(16) {
	case 0:
		return hangs(c, req)
	case 1:
		return false
	case 2:
		return after(pause, says(raw))(c, req)
	case 3:
		return after(4*pause, says(raw))(c, req)
	case 4:
		return says(answer([]int{500, 501, 503, 404, 302}[draw(5)], "none"))(c, req)
	case 5:
		io.WriteString(c, raw[:draw(len(raw))])
		return false
	case 6:
		n := draw(len(raw))
		io.WriteString(c, raw[:n])
		time.Sleep(pause)
		return says(raw[n:])(c, req)
	case 7:
		says(answer(200, bodyOf(req.URL.Path, size), "Connection: close"))(c, req)
		return false
	case 8:
		io.WriteString(c, raw[:draw(len(raw))])
		return hangs(c, req)
	case 9:
		return says(strings.Replace(raw, "v1", "v0", 1))(c, req)
	}
	return says(raw)(c, req)
}
