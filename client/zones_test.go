package client_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"sequins/client"
)

// quickly answers within some milliseconds, and one time in fifty after 300 ms.
func quickly() time.Duration {
	if rand.IntN(50) == 0 {
		return 300 * time.Millisecond
	}
	return time.Millisecond + rand.N(4*time.Millisecond)
}

// stays makes calls, and returns how many of their attempts were at nodes of the client's zone, in percent.
func stays(t *testing.T, c *client.Client, calls int) float64 {
	t.Helper()
	before := c.Stats()
	for range calls {
		mustGet(t, c)
	}
	after := c.Stats()
	return 100 * float64(after.SameZone-before.SameZone) / float64(after.Attempts-before.Attempts)
}

// Reads stay in the zone of the client, also if many are slow, as long as its node answers.
func TestReadsStayInTheirZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, client.Options{Zone: "x"})
		defer c.Close()
		if percent := stays(t, c, 2000); percent < 99 {
			t.Errorf("%.1f %% of the attempts stay", percent)
		}
		w.set("a:1", quickly)
		if percent := stays(t, c, 10_000); percent < 99 {
			t.Errorf("with slow answers, %.1f %% of the attempts stay", percent)
		}
		if s := c.Stats(); s.SameZone+s.OtherZone > s.Attempts || s.OtherZone == 0 || s.Attempts != int64(w.total()) {
			t.Errorf("%+v of %d requests", s, w.total())
		}
	})
}

// A client without a zone, and one in a zone without nodes, read from all nodes.
func TestZoneWithoutNodes(t *testing.T) {
	for _, zone := range []string{"", "z"} {
		synctest.Test(t, func(t *testing.T) {
			w, c := newWorld(t, client.Options{Zone: zone})
			defer c.Close()
			before := w.asked["a:1"]
			for range 3000 {
				mustGet(t, c)
			}
			if n := w.asked["a:1"] - before; n < 800 || n > 1300 {
				t.Errorf("zone %q: a node is asked %d times of 3000", zone, n)
			}
			if s := c.Stats(); s.SameZone != 0 || (s.OtherZone == 0) != (zone == "") {
				t.Errorf("zone %q: %+v", zone, s)
			}
		})
	}
}

// When the nodes of the zone hang, few calls are slow, and the other zones answer; then the zone is preferred again.
func TestLostZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, client.Options{Zone: "x"})
		defer c.Close()
		w.set("a:1", func() time.Duration { return -1 })
		slow := 0
		for range 1000 {
			if mustGet(t, c) > 100*time.Millisecond {
				slow++
			}
			time.Sleep(time.Millisecond)
		}
		if slow > 10 {
			t.Errorf("%d of 1000 calls were slow", slow)
		}
		w.set("a:1", func() time.Duration { return time.Millisecond })
		time.Sleep(time.Minute)
		if percent := stays(t, c, 1000); percent < 99 {
			t.Errorf("after its recovery, %.1f %% of the attempts stay", percent)
		}
	})
}

// While the nodes of the zone fail, one of another zone that has recovered is used, too.
func TestRecoveredElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, client.Options{Zone: "x"})
		defer c.Close()
		hangs := func() time.Duration { return -1 }
		w.set("a:1", hangs)
		w.set("b:1", hangs)
		for range 100 {
			mustGet(t, c)
			time.Sleep(10 * time.Millisecond)
		}
		w.set("b:1", func() time.Duration { return time.Millisecond })
		time.Sleep(time.Minute)
		before := w.asked["b:1"]
		for range 1000 {
			mustGet(t, c)
			time.Sleep(10 * time.Millisecond)
		}
		if n := w.asked["b:1"] - before; n < 200 {
			t.Errorf("after its recovery it is asked %d times of 1000", n)
		}
	})
}
