package node

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/observe/status"
)

// What keeps a node from being ready is in its status and in the reason of /readyz, and nothing else is waited for when it is served.
func TestWaits(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.source.down.Store(true)
	synctest.Test(t, func(t *testing.T) {
		joining := status.Wait{For: status.WaitForZooKeeper, What: "ZooKeeper (connection refused)", Since: time.Now().Add(-12 * time.Second)}
		c := newCluster()
		n := f.follow(t, func(o *Options) {
			o.Cluster, o.Joining = c, func() *status.Wait { return &joining }
		})
		since := n.admission.Swap(nil) // as during the start
		if ok, why := n.Ready(""); ok || why != "it waits for ZooKeeper (connection refused) (for 12 s)" {
			t.Errorf("%v, %q", ok, why)
		}
		if ok, why := n.Ready("fruit"); ok || !strings.Contains(why, "ZooKeeper") {
			t.Errorf("%v, %q", ok, why)
		}
		if w := n.Status().Waiting; len(w) != 1 || !w[0].Blocks || w[0].For != status.WaitForZooKeeper {
			t.Errorf("%+v", w)
		}
		n.admission.Store(since)
		time.Sleep(20 * time.Second)
		ok, why := n.Ready("")
		if ok || !strings.HasPrefix(why, "it waits for the source, which cannot be read: ") {
			t.Errorf("%v, %q", ok, why)
		}
		if w := n.Status().Waiting; len(w) != 1 || !w[0].Blocks || w[0].For != status.WaitForSource || time.Since(w[0].Since) < 19*time.Second {
			t.Errorf("%+v", w)
		}
		f.source.down.Store(false)
		n.Refresh()
		time.Sleep(time.Second)
		if w := n.Status().Waiting; len(w) != 0 {
			t.Errorf("%+v", w)
		}
		if ok, why := n.Ready(""); !ok {
			t.Error(why)
		}
	})
}

// A load is waited for by name, with its progress; a version that has failed with its reason. A newer one does not keep a node from being
// ready.
func TestWaitsForLoads(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.damage("fruit", "1", "part-r-00000")
	r := f.run()
	r.eventually("it waits for the version that has failed", func() bool {
		w := r.Status().Waiting
		return len(w) == 1 && w[0].DB == "fruit" && w[0].Version == "1" && strings.Contains(w[0].What, "its last load has failed: ")
	})
	if ok, why := r.Ready("fruit"); ok || !strings.HasPrefix(why, "it waits for version 1 of fruit: ") {
		t.Errorf("%v, %q", ok, why)
	}
	r.update("fruit", "2", 2, fruit...)
	r.eventually("it waits for nothing", func() bool { return len(r.Status().Waiting) == 0 })
	if ok, why := r.Ready("fruit"); !ok {
		t.Error(why)
	}
}

// Partitions that no node holds any more are logged, once, and that they are there again.
func TestLostPartitionsAreLogged(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.owned = []int{0}
		c.hold("1", 1, 2)
		n := f.follow(t, func(o *Options) { o.Cluster = c })
		time.Sleep(time.Second)
		if n.current("fruit") != "1" || f.log.count("partitions are on no node") != 0 {
			t.Fatal("it is not served, or partitions are lost")
		}
		for range 3 {
			c.hold("1", 1)
			time.Sleep(time.Second)
		}
		if f.log.count("partitions are on no node", "version=1", "partitions=2 ", "count=1") != 1 {
			t.Error("the log does not have the lost partition once")
		}
		c.hold("1", 1, 2)
		time.Sleep(time.Second)
		if f.log.count("all partitions are on some node again", "version=1") != 1 {
			t.Error("the log does not say that it is there again")
		}
	})
}
