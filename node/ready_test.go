package node

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"sequins/test/expect"
)

// TestNotReadyBeforeItHasSettled: a node that has started is not ready before it serves a version that settles, also while it looks
// at it again.
func TestNotReadyBeforeItHasSettled(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", "fig")
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.Source, o.Settle = tardySource{f.source}, 10*time.Second })
		for i := range 60 {
			time.Sleep(500 * time.Millisecond)
			if ready, _ := n.Ready(""); ready != (n.current("fruit") == "1") {
				t.Fatalf("after %d half seconds ready is %v", i+1, ready)
			}
		}
		if ready, reason := n.Ready(""); !ready {
			t.Error(reason)
		}
	})
}

// TestReadyStays: a node that has become ready although a version never settles stays so.
func TestReadyStays(t *testing.T) {
	f := newFixture(t)
	f.unmarked("fruit", "1", "fig")
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.Source, o.Settle = tardySource{f.source}, 10*time.Second })
		was := false
		for i := range 240 {
			time.Sleep(500 * time.Millisecond)
			if i%8 == 0 { // more often than it is looked at
				expect.NoError(t, os.Chtimes(filepath.Join(f.root, "fruit", "1", "part-r-00000"), time.Now(), time.Now().Add(time.Duration(i)*time.Second)))
			}
			ready, reason := n.Ready("")
			if was && !ready {
				t.Fatalf("after %d half seconds: %s", i+1, reason)
			}
			was = was || ready
		}
		if !was {
			t.Error("it never became ready")
		}
	})
}

// TestReadyWithoutOthers: a node that has its part of a new database does not wait for ever for nodes that cannot load theirs.
func TestReadyWithoutOthers(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.owned = []int{0}
		n := f.follow(t, func(o *Options) { o.Cluster = c })
		time.Sleep(stallTimeout / 2)
		if ok, _ := n.Ready(""); ok {
			t.Error("it is ready, and others may still load")
		}
		time.Sleep(stallTimeout)
		if ok, why := n.Ready(""); !ok || n.current("fruit") != "" {
			t.Errorf("ready: %v, %s", ok, why)
		}
	})
}

// TestReadyWhenOthersAreThere: a node that has started waits for those that hold the partitions which it does not
// have, as they may be starting, too; but not for ever. What it has is advertised when requests are answered.
func TestReadyWhenOthersAreThere(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.owned = []int{0}
		c.hold("1", 1, 2)
		n := f.follow(t, func(o *Options) { o.Cluster = c })
		time.Sleep(time.Second)
		if ok, why := n.Ready(""); !ok || n.current("fruit") != "1" {
			t.Fatalf("it is not ready: %s", why)
		}
		n.stop()

		f.source.down.Store(true) // nothing of what it does not have can be loaded
		for _, come := range []bool{true, false} {
			c := newCluster()
			n := f.follow(t, func(o *Options) { o.Cluster = c })
			time.Sleep(wholeTimeout / 2)
			if ok, why := n.Ready(""); ok || why != "it waits for nodes that hold partitions of fruit which no node has that is known yet (for 5 s)" {
				t.Errorf("ready: %v, %q", ok, why)
			}
			if n.current("fruit") != "1" || len(c.has("1")) != 1 {
				t.Errorf("what it has is not served, or others are not told: %v", c.has("1"))
			}
			if come {
				c.hold("1", 1, 2)
				time.Sleep(time.Second)
				if ok, why := n.Ready(""); !ok {
					t.Errorf("all partitions are there: %s", why)
				}
				c.hold("1")
				time.Sleep(time.Second)
			} else {
				time.Sleep(wholeTimeout)
			}
			if ok, why := n.Ready(""); !ok {
				t.Errorf("it is not ready for good: %s", why)
			}
			n.stop()
		}
	})
}
