package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/load"
	"sequins/store"
	"sequins/test/expect"
	"sequins/version"
)

// A deaf listener has no connections.
type deaf struct{ net.Listener }

func (deaf) Close() error { return nil }

func (deaf) Addr() net.Addr { return &net.TCPAddr{} }

// A following is a node that does everything but answer requests, in a bubble of synctest.
type following struct {
	*Node
	stop func()
}

// follow starts a node that is stopped at the end of the bubble, if not before.
func (f *fixture) follow(t *testing.T, change func(*Options)) *following {
	t.Helper()
	local, err := store.Open(f.store)
	expect.NoError(t, err)
	o := Options{Source: f.source, SourceName: f.root, Loads: f.launcher(), Store: local, Listener: deaf{}, Logger: f.log.Logger(),
		Reloadable: Reloadable{DBRemoveTimeout: time.Hour}}
	change(&o)
	n, err := New(o)
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	expect.NoError(t, n.follower.start(ctx, n.admit))
	n.begin()
	n.following.Go(func() { n.follower.follow(ctx) })
	synctest.Wait() // it has looked at the source, unless that takes its time
	stop := sync.OnceFunc(func() {
		cancel()
		n.following.Wait()
		for _, d := range n.follower.dbs {
			expect.NoError(t, d.close())
		}
		expect.NoError(t, local.Close())
	})
	t.Cleanup(stop)
	return &following{n, stop}
}

// TestOldVersionLingers: it stays for version_remove_timeout after the last
// request for it, and is read from by its name until then. After that it is not
// followed any more.
func TestOldVersionLingers(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	f.put("fruit", "2", 2, fruit...)
	f.remove("fruit", "2", "_SUCCESS")
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n := f.follow(t, func(o *Options) {
			o.Cluster, o.VersionRemoveTimeout, o.RefreshPeriod = c, 10*time.Minute, time.Minute
			o.each(requireSuccess)
		})
		set := n.Set([]byte("fruit"))
		by := func(name string) bool {
			h := set.AcquireVersion(name, "")
			if h != nil {
				h.Release()
			}
			return h != nil
		}
		time.Sleep(time.Second)
		if set.Current().Name != "1" || !by("1") {
			t.Fatalf("current is %q", set.Current().Name)
		}
		if diff := cmp.Diff([]int{0, 1}, c.has("1")); diff != "" {
			t.Errorf("advertised of 1:\n%s", diff)
		}
		f.finish("fruit", "2")
		time.Sleep(2 * time.Minute) // a refresh, and the load
		n.expectCurrent(t, "fruit", "2")
		time.Sleep(7 * time.Minute)
		if !by("1") {
			t.Fatal("it did not stay for its time")
		}
		time.Sleep(9 * time.Minute)
		if s := n.onNode("fruit", "1"); s.State != "REMOVING" || len(c.has("1")) != 2 {
			t.Errorf("after 9 minutes more it is %+v, advertised %v", s, c.has("1"))
		}
		time.Sleep(2 * time.Minute)
		if by("1") || len(c.has("1")) != 0 || f.onDisk("fruit") != "2" {
			t.Errorf("it stays on: by name %v, advertised %v, on disk %s", by("1"), c.has("1"), f.onDisk("fruit"))
		}
		f.put("fruit", "3", 2, fruit...)
		time.Sleep(12 * time.Minute)
		if got := c.follows(); !slices.Equal(got, []string{"3"}) {
			t.Errorf("followed are %q, and only 3 is left", got)
		}
	})
}

// TestLingerIsBounded: whoever asks for a replaced version, it goes after twice its
// time, or later if only nodes can ask.
func TestLingerIsBounded(t *testing.T) {
	for secret, most := range map[string]int{"": 20, "the-secret-of-the-cluster": 240} {
		f := newFixture(t)
		f.put("fruit", "1", 1, fruit...)
		f.put("fruit", "2", 1, fruit...)
		f.remove("fruit", "2", "_SUCCESS")
		synctest.Test(t, func(t *testing.T) {
			n := f.follow(t, func(o *Options) {
				o.Cluster, o.VersionRemoveTimeout, o.RefreshPeriod = newCluster(), 10*time.Minute, time.Minute
				o.each(requireSuccess)
				o.Server.PeerSecret = secret
			})
			set := n.Set([]byte("fruit"))
			time.Sleep(time.Second)
			f.finish("fruit", "2")
			time.Sleep(2 * time.Minute)
			n.expectCurrent(t, "fruit", "2")
			minutes := 0
			for ; minutes < 2*most; minutes++ {
				h := set.AcquireVersion("1", "")
				if h == nil {
					break
				}
				h.Release()
				time.Sleep(time.Minute)
			}
			if minutes < most-3 || minutes > most+1 {
				t.Errorf("with the secret %q it stayed for %d minutes, want about %d", secret, minutes, most)
			}
		})
	}
}

// TestGivenUpPartitionsLinger: others are told at once of a partition that is not
// needed any more, and those who have not heard it are answered for a while. One
// that is needed again stays.
func TestGivenUpPartitionsLinger(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n := f.follow(t, func(o *Options) { o.Cluster, o.VersionRemoveTimeout = c, 10*time.Minute })
		time.Sleep(time.Second)
		check := func(when string, advertised, held []int) {
			t.Helper()
			if diff := cmp.Diff(advertised, c.has("1")); diff != "" {
				t.Errorf("%s, advertised:\n%s", when, diff)
			}
			s := n.onNode("fruit", "1")
			if diff := cmp.Diff(held, s.Partitions); diff != "" {
				t.Errorf("%s, held:\n%s", when, diff)
			}
			if blocks, err := filepath.Glob(filepath.Join(f.dir("fruit", "1"), "*.block")); err != nil || len(blocks) != len(held) {
				t.Errorf("%s, on disk: %v, %v", when, blocks, err)
			}
		}
		check("at first", []int{0, 1, 2}, []int{0, 1, 2})
		c.take(0)
		time.Sleep(time.Minute)
		check("0 is given up", []int{1, 2}, []int{0, 1, 2})
		c.take(0, 2)
		time.Sleep(8 * time.Minute)
		check("2 is given up", []int{1}, []int{0, 1, 2})
		time.Sleep(90 * time.Second)
		check("0 has had its time", []int{1}, []int{1, 2})
		c.take(0)
		time.Sleep(time.Hour)
		check("2 is needed again", []int{1, 2}, []int{1, 2})
	})
}

// TestDivisionIsTold: other nodes are told by which division a version was loaded, also after a restart, and of another input as soon as the
// version is loaded from that.
func TestDivisionIsTold(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	synctest.Test(t, func(t *testing.T) {
		division := func(files int) string {
			c := newCluster()
			if files == 3 {
				c.owned = []int{0} // it is not active, so that it may change
			}
			defer f.follow(t, func(o *Options) { o.Cluster = c }).stop()
			time.Sleep(time.Second)
			m := f.manifest("fruit", "1")
			told := c.label(m.Content().Input)
			if m.Content().Division != c.division(told) || m.Partitions != files || len(c.has(told)) == 0 {
				t.Errorf("of %q, told is %q of %d partitions, %v; the store has %+v", told, c.division(told), files, c.has(told), m)
			}
			return c.division(told)
		}
		first := division(3)
		if again := division(3); again != first {
			t.Errorf("after a restart, told is %q, not %q", again, first)
		}
		expect.NoError(t, os.RemoveAll(filepath.Join(f.root, "fruit", "1")))
		f.put("fruit", "1", 4, fruit...)
		if other := division(4); other == first {
			t.Error("with other files, told is the same")
		}
	})
}

// TestSwitchDoesNotWaitForOwnLoad: other nodes have the version, so this one
// switches and proxies, and goes on loading.
func TestSwitchDoesNotWaitForOwnLoad(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 3, fruit...)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.owned = []int{1}
		n := f.follow(t, func(o *Options) { o.Cluster, o.MinReplication = c, 1 })
		set := n.Set([]byte("fruit"))
		time.Sleep(time.Second)
		n.expectCurrent(t, "fruit", "") // without the partitions of others it is not active
		s := n.onNode("fruit", "1")
		if diff := cmp.Diff([]int{1}, s.Partitions); diff != "" || s.State != "BUILDING" ||
			s.Detail != "prepared, waiting for other nodes to hold 2 partitions: 0, 2" {
			t.Errorf("its own partition is loaded: %+v", s)
		}
		if h := set.AcquireVersion("1", ""); h == nil {
			t.Error("a prepared version is not here for peers")
		} else {
			if _, _, err := h.Get(0, []byte("fig"), nil); err != version.ErrNotLocal {
				t.Errorf("a partition of others: %v", err)
			}
			h.Release()
		}
		c.hold("1", 0)
		time.Sleep(time.Second)
		n.expectCurrent(t, "fruit", "") // nor without partition 2
		c.hold("1", 0, 2)
		time.Sleep(time.Second)
		n.expectCurrent(t, "fruit", "1")
		h := set.Acquire()
		defer h.Release()
		if diff := cmp.Diff([]string{"peer:1"}, h.Following.Peers(0)); diff != "" {
			t.Errorf("peers of partition 0:\n%s", diff)
		}
	})
}

// TestJoiningNodeServesAtOnce: the cluster has a complete version, so a node
// without any data answers from it at its start, and not after its load.
func TestJoiningNodeServesAtOnce(t *testing.T) {
	f, first, _ := divisions(t)
	f.put("fruit", "2", 2, fruit...)
	peer, c := f.giver(), newCluster()
	peer.gives("fruit", first)
	c.addr = peer.addr
	c.holdsOther("1", first.Content())
	c.hold("1", 0, 1, 2)
	r := f.run(func(o *Options) { o.Cluster = c })
	r.serves("fruit", "2")
	if active := f.log.with("version active"); len(active) != 2 || !strings.Contains(active[0], "version=1") {
		t.Errorf("became active: %q", active)
	}
}

// TestBackBesideABrokenVersion: a version whose files were deleted while it was loaded, and are back, is loaded and served, as the newer one
// is broken, although a version that is removed stays for an hour.
func TestBackBesideABrokenVersion(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 2, fruit...)
	r := f.run(func(o *Options) { o.Cluster, o.VersionRemoveTimeout = newCluster(), time.Hour })
	r.serves("fruit", "1")
	r.Apply(Reloadable{VersionRemoveTimeout: time.Hour, DB: func(string) DB { return DB{Load: load.Options{Throttle: time.Minute}} }})
	f.put("fruit", "2", 2, fruit...)
	r.Refresh()
	r.eventually("2 is prepared", func() bool { return named(r.Set([]byte("fruit")), "2") != nil })
	r.Apply(Reloadable{VersionRemoveTimeout: time.Hour})
	f.put("fruit", "3", 2, fruit...)
	f.damage("fruit", "3", "part-r-00001")
	f.remove("fruit", "2")
	r.Refresh()
	r.eventually("2 is being removed", func() bool { return r.onNode("fruit", "2").State == "REMOVING" })
	r.update("fruit", "2", 2, fruit...)
	r.eventually("its load has ended", func() bool { return r.onNode("fruit", "2").Error == "" && len(r.onNode("fruit", "2").Partitions) == 2 })
	for _, key := range fruit {
		if got := r.get("/fruit/" + key); got.body != key+" of 2" {
			t.Errorf("%s: %+v", key, got)
		}
	}
}

// TestVersionIsBackAtOnce: a version that has left the source is loaded when it is there again, from the files that it
// has then. Its linger begins anew when it leaves the source again.
func TestVersionIsBackAtOnce(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.owned = []int{0}
		n := f.follow(t, func(o *Options) { o.Cluster, o.VersionRemoveTimeout = c, time.Hour })
		time.Sleep(time.Second)
		set := n.Set([]byte("fruit"))
		for files := range 2 {
			f.put("fruit", "2", 2+files, fruit...) // another node has to have the other partitions
			n.Refresh()
			time.Sleep(time.Second)
			f.remove("fruit", "2")
			n.Refresh()
			time.Sleep(40 * time.Minute)
			if named(set, "2") == nil {
				t.Fatal("it does not linger")
			}
		}
		c.hold("2#3", 1, 2)
		f.put("fruit", "2", 3, fruit[1:]...)
		n.Refresh()
		time.Sleep(time.Second)
		if set.Current().Name != "2" || f.log.count("load started", "version=2") != 3 {
			t.Errorf("current is %q after %d loads", set.Current().Name, f.log.count("load started", "version=2"))
		}
	})
}

// TestRepairThatSettles: a version that failed is neither removed nor loaded while files are being put into it.
func TestRepairThatSettles(t *testing.T) {
	f := newFixture(t)
	f.put("fruit", "1", 1, fruit...)
	synctest.Test(t, func(t *testing.T) {
		n := f.follow(t, func(o *Options) { o.Settle, o.RefreshPeriod = 10*time.Second, 4*time.Second })
		time.Sleep(time.Second)
		f.unmarked("fruit", "2", fruit...)
		f.damage("fruit", "2", "part-r-00000")
		time.Sleep(20 * time.Second)
		if s := n.onNode("fruit", "2"); s.State != "ERROR" {
			t.Fatalf("it has not failed: %+v", s)
		}
		f.remove("fruit", "2", "part-r-00000")
		for i := range 5 {
			f.putFile(fmt.Sprintf("fruit/2/part-r-%05d", i), "2", inFile(i, 5, fruit)...)
			time.Sleep(5 * time.Second)
			if s := n.onNode("fruit", "2"); s.State != "ERROR" || s.Error == "" {
				t.Errorf("with %d files it is %+v", i+1, s)
			}
		}
		time.Sleep(15 * time.Second)
		n.expectCurrent(t, "fruit", "2")
	})
}
