package proxy

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/test/expect"
)

// Healthy peers are asked equally often; failing ones after them, except for one request a second.
func TestOrder(t *testing.T) {
	inWorld(t, 4, func(w *world) {
		w.warm()
		count := func(n int) map[string]int {
			from := map[string]int{}
			for range n {
				g, err := fetch(w.Client, query(w.peers...))
				expect.NoError(t, err)
				from[g.peer]++
			}
			return from
		}
		const many = 2000
		for name, n := range count(many) {
			if n < many/4*8/10 || n > many/4*12/10 {
				t.Errorf("%d of %d requests went to %s", n, many, name)
			}
		}
		asked := func() int64 { return w.peers[0].asked.Load() }
		w.peers[0].set(breaks)
		before := asked()
		count(many)
		if n := asked() - before; n != 2 { // on the old connection and on a new one
			t.Errorf("a peer that breaks was asked %d times", n)
		}
		if got := w.logs.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "peer=a") || !strings.Contains(got, "the connection ended without an answer") {
			t.Errorf("logged: %s", got)
		}
		for range 5 {
			before := asked()
			time.Sleep(retryTime)
			count(many)
			if n := asked() - before; n != 1 {
				t.Errorf("a peer that breaks was asked %d times in a second", n)
			}
		}
		w.peers[0].set(says(answer(200, "a")))
		time.Sleep(retryTime)
		if n := count(many)["a"]; n < many/4*8/10 {
			t.Errorf("a peer that is well again was asked %d times of %d", n, many)
		}
		if got := w.logs.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "well again") {
			t.Errorf("logged: %s", got)
		}
		// So is one that always answers with an error.
		w.peers[0].set(says(answer(500, "")))
		before = asked()
		count(many)
		if n := asked() - before; n < 2 || n > 4 {
			t.Errorf("a peer that answers with errors was asked %d times", n)
		}
		w.peers[0].set(says(answer(200, "a")))
		time.Sleep(retryTime)
		count(100)
		// One that hangs costs a stage's time a few times, and then once a second.
		w.peers[0].set(hangs)
		begun := time.Now()
		count(many)
		if d := time.Since(begun); d > 4*stageTime {
			t.Errorf("a peer that hangs has cost %v", d)
		}
		// When all fail all are still asked.
		for _, p := range w.peers {
			p.set(hangs)
		}
		w.ask(raceTime)
		for _, p := range w.peers {
			w.Client.peer(p.addr).failed(errDown)
			p.set(says(answer(200, p.addr)))
		}
		count(10)
	})
}

// A peer that is always slow is one that fails, one that is slow at times is not.
func TestSlowPeers(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		p := w.peer("a")
		for _, slow := range []int{1, 1, 0, 1, 0, 0, 1} {
			if slow == 1 {
				p.observe(stageTime, errLate)
			} else {
				p.observe(0, errLate)
			}
			if p.failing(time.Now()) {
				t.Error("a peer that is slow at times is failing")
			}
		}
		w.peers[0].set(after(stageTime*3/4, says(answer(200, "a"))))
		for range 10 {
			w.wantFrom(0, stageTime*3/4)
		}
		if !p.failing(time.Now()) {
			t.Error("a peer that is always slow is not failing")
		}
		time.Sleep(retryTime)
		if now := time.Now(); p.failing(now) || !p.failing(now) {
			t.Error("a peer that is failing is not tried by exactly one")
		}
	})
}

// So is one that hangs, after three requests, also on connections that are open.
func TestHangingPeer(t *testing.T) {
	for _, open := range []int{0, 3} {
		inWorld(t, 2, func(w *world) {
			w.peers[0].set(after(time.Millisecond, says(answer(200, "a"))))
			var wg sync.WaitGroup
			for range open {
				wg.Go(func() { fetch(w.Client, query(w.peers[0])) })
			}
			wg.Wait()
			w.peers[0].set(hangs)
			p := w.peer("a")
			for range 3 {
				if p.failing(time.Now()) {
					t.Error("it is failing early")
				}
				cost := p.cost.Load()
				w.first(0)
				p.cost.Store(cost)
				w.wantFrom(1, stageTime)
			}
			if !p.failing(time.Now()) {
				t.Errorf("%d open connections: it is not failing", open)
			}
		})
	}
}

// A peer that refuses connections or fails at once adds less than 5 ms.
func TestFailureIsCheap(t *testing.T) {
	good := listen(t, says(answer(200, "good")))
	refusing := &fakePeer{addr: "127.0.0.1:1"}
	for name, bad := range map[string]*fakePeer{"refuses": refusing, "breaks": listen(t, breaks), "500": listen(t, says(answer(500, ""))), "501": listen(t, says(answer(501, "")))} {
		c := client(t, Options{Timeout: ample})
		if _, err := fetch(c, query(good)); err != nil {
			t.Fatal(err)
		}
		var times []time.Duration
		for range 51 {
			c.peer(good.addr).failed(errDown) // so that the bad one is asked first
			c.peer(good.addr).retryAt.Store(1 << 62)
			c.peer(bad.addr).cost.Store(0)
			begun := time.Now()
			if g, err := fetch(c, query(bad, good)); err != nil || g.body != "good" {
				t.Fatal(g, err)
			}
			times = append(times, time.Since(begun))
		}
		// The least, since a wait that is built in is in all of them, and what a busy machine adds is not.
		d := slices.Min(times)
		t.Logf("%s: %v", name, d)
		if d > 5*time.Millisecond {
			t.Errorf("a peer that %s adds %v", name, d)
		}
	}
}
