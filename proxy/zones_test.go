package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

// in gives the client of a world a zone, and its peers a, b, c… the zones that the letters of theirs name; "-" for none.
func (w *world) in(own, theirs string) {
	of := map[string]string{}
	for i, zone := range strings.Split(theirs, "") {
		of[w.peers[i].addr] = strings.TrimPrefix(zone, "-")
	}
	w.Client.opts.Zones = Zones{Own: own, Of: func(addr string) string { return of[addr] }}
}

// counts returns how many of n requests each peer has answered.
func (w *world) counts(n int) map[string]int {
	w.Helper()
	from := map[string]int{}
	for range n {
		g, err := fetch(w.Client, query(w.peers...))
		expect.NoError(w, err)
		from[g.peer]++
	}
	return from
}

// Healthy peers in the zone of the node are asked first, equally often; then healthy ones in other zones and in none; and
// failing ones last.
func TestOrderByZone(t *testing.T) {
	for _, test := range []struct{ own, theirs, failing, asked string }{
		{"", "----", "", "abcd"},
		{"", "xxyy", "", "abcd"},
		{"x", "----", "", "abcd"},
		{"x", "yyyy", "", "abcd"},
		{"x", "yyzz", "a", "bcd"},
		{"x", "xxxx", "", "abcd"},
		{"x", "xyyy", "", "a"},
		{"x", "yyyx", "", "d"},
		{"x", "yxyx", "", "bd"},
		{"x", "-xyx", "b", "d"},
		{"x", "xyy-", "a", "bcd"},
		{"x", "xyyx", "ad", "bc"},
		{"x", "xyyx", "abd", "c"},
		{"x", "xyy-", "bcd", "a"},
	} {
		t.Run(fmt.Sprintf("%q of %q, %q failing", test.own, test.theirs, test.failing), func(t *testing.T) {
			inWorld(t, 4, func(w *world) {
				w.warm()
				w.in(test.own, test.theirs)
				for _, p := range w.peers {
					if strings.Contains(test.failing, p.addr) {
						w.peer(p.addr).failed(errDown)
					}
				}
				const each = 200
				from := w.counts(each * len(test.asked))
				if asked := strings.Join(slices.Sorted(maps.Keys(from)), ""); asked != test.asked {
					t.Fatalf("asked: %v, want %s", from, test.asked)
				}
				for name, n := range from {
					if n < each*7/10 {
						t.Errorf("%s was asked %d times of %d", name, n, each)
					}
				}
			})
		})
	}
}

// Whatever the zones are, each peer is asked, once, before there is no answer.
func TestAllZonesAreAsked(t *testing.T) {
	for _, theirs := range []string{"----", "xyyz", "yyxx", "xxxx"} {
		inWorld(t, 4, func(w *world) {
			w.in("x", theirs)
			for _, p := range w.peers {
				p.set(says(answer(501, "")))
			}
			if _, err := w.ask(0); err == nil || !strings.Contains(err.Error(), "4 asked") {
				t.Errorf("%s: %v", theirs, err)
			}
			for _, p := range w.peers {
				if n := p.asked.Load(); n != 1 {
					t.Errorf("%s: %s was asked %d times", theirs, p.addr, n)
				}
			}
		})
	}
}

// A lost zone costs a request one stage at most, and soon nothing; when it is back, it is preferred again.
func TestLostZone(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.warm()
		w.in("x", "xyz")
		w.peers[0].set(hangs)
		for i := range 100 {
			begun := time.Now()
			g, err := fetch(w.Client, query(w.peers...))
			if took := time.Since(begun); err != nil || g.peer == "a" || took > stageTime || took > 0 && i >= 5 {
				t.Errorf("request %d takes %v: %q, %v", i, took, g.peer, err)
			}
		}
		w.peers[0].set(says(answer(200, "a")))
		time.Sleep(retryTime)
		if got := w.counts(100); got["a"] != 100 {
			t.Errorf("a peer that is well again was asked as one of %v", got)
		}
	})
}

// A silent peer makes a request leave the zone, also if another peer is in it.
func TestLostZoneOfTwo(t *testing.T) {
	for range 20 { // the order is random
		inWorld(t, 4, func(w *world) {
			w.warm()
			w.in("x", "xxyy")
			w.peers[0].set(hangs)
			w.peers[1].set(hangs)
			if g, err := w.ask(stageTime); err != nil || g.peer < "c" {
				t.Errorf("%q, %v", g.peer, err)
			}
		})
	}
}

// Attempts are counted by zone.
func TestCountedByZone(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.in("x", "xy-")
		for _, p := range w.peers {
			p.set(says(answer(501, "")))
		}
		if _, err := w.ask(0); err == nil {
			t.Error("a version that no peer has is answered")
		}
		synctest.Wait() // attempts are counted after their results have been taken
		want := map[string]float64{"same": 1, "other": 1, "unknown": 1}
		if diff := cmp.Diff(want, numbers(w.metrics, "sequins_proxy_attempts_total", "zone")); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}
