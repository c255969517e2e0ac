package node

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
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

	"sequins/internal/content"
	"sequins/load"
	"sequins/shard"
	"sequins/store"
	"sequins/test/expect"
	"sequins/version"
	"sequins/version/report"
)

// A testCluster is what a node is told of its peers. Contents have labels: that of the first input of a version that the node follows is the
// version's name, that of the second one is <name>#2.
type testCluster struct {
	mu         sync.Mutex
	labels     map[follows]string
	peers      map[string][]int // partitions that one peer holds, by label
	owned      []int            // nil: all
	surplus    []int            // what others have taken over
	advertised map[string][]int
	divisions  map[string]string
	reports    map[string]string // of this node
	followed   map[string]bool
	others     map[string][]content.Content // what another node has, by the names of versions
	addr       string                       // of that node
	mixed      bool
	left       bool // nothing is published any more
	changes    chan map[string]bool
	peer       *testCluster // of another node, whose contents and reports this one sees
	watchers   []*testCluster
}

// follows is an input that a node follows.
type follows struct {
	db string
	in content.Input
}

func newCluster() *testCluster {
	return &testCluster{labels: map[follows]string{}, peers: map[string][]int{}, advertised: map[string][]int{}, divisions: map[string]string{},
		reports: map[string]string{}, followed: map[string]bool{}, others: map[string][]content.Content{},
		addr: "127.0.0.1:1", changes: make(chan map[string]bool, 1)}
}

func (c *testCluster) Join(context.Context, func([]string) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = false // a node has started again
	return nil
}

func (c *testCluster) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.advertised, c.reports = true, map[string][]int{}, map[string]string{}
	for _, other := range c.watchers {
		other.changed()
	}
}

func (c *testCluster) Follow(_ context.Context, db string, in content.Input) version.Following {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := follows{db, in}
	label, before := c.labels[key], 1
	for other := range c.labels {
		if other.db == db && other.in.Name == in.Name {
			before++
		}
	}
	if label == "" && before == 1 {
		label = in.Name
	} else if label == "" {
		label = fmt.Sprintf("%s#%d", in.Name, before)
	}
	c.labels[key], c.followed[label] = label, true
	return testFollowing{testCluster: c, db: db, in: in, v: label}
}

func (c *testCluster) Mixed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mixed
}

func (c *testCluster) Knows(string) bool { return false }

func (c *testCluster) Changes() <-chan map[string]bool { return c.changes }

// changed says that something may have changed for any database.
func (c *testCluster) changed() {
	select {
	case c.changes <- map[string]bool{"": true}:
	default:
	}
}

// A testFollowing is what a node is told of one input.
type testFollowing struct {
	version.Solo
	*testCluster
	db string
	in content.Input
	v  string // its label
}

func (f testFollowing) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followed, f.v)
	delete(f.reports, f.v)
}

// SetDivision withdraws what was advertised by another division.
func (f testFollowing) SetDivision(division string, _ int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before := f.divisions[f.v]; before != "" && before != division {
		delete(f.advertised, f.v)
		delete(f.reports, f.v)
	}
	f.divisions[f.v] = division
}

// Elsewhere has what the peer holds once this node has planned it, and what another node has.
func (f testFollowing) Elsewhere() map[content.Content][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[content.Content][]string)
	for key, label := range f.labels {
		if key.db == f.db && key.in.Name == f.in.Name && len(f.peers[label]) > 0 && f.divisions[label] != "" {
			all[content.Content{Input: key.in, Division: f.divisions[label]}] = []string{f.addr}
		}
	}
	for _, c := range f.others[f.in.Name] {
		all[c] = []string{f.addr}
	}
	if f.peer != nil {
		f.peer.mu.Lock()
		defer f.peer.mu.Unlock()
		for key, label := range f.peer.labels {
			if key.db == f.db && key.in.Name == f.in.Name && (len(f.peer.advertised[label]) > 0 || f.peer.reports[label] != "") {
				all[content.Content{Input: key.in, Division: f.peer.divisions[label]}] = []string{f.addr}
			}
		}
	}
	return all
}

// Surplus is those of f.surplus that the node holds.
func (f testFollowing) Surplus(held []bool) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.surplus), func(p int) bool { return !held[p] })
}

func (f testFollowing) Owned(partitions int) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.owned != nil {
		return f.owned
	}
	return version.Solo{}.Owned(partitions)
}

func (f testFollowing) Peers(partition int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.peers[f.v], partition) {
		return []string{"peer:1"}
	}
	if f.peer != nil {
		f.peer.mu.Lock()
		defer f.peer.mu.Unlock()
		label := f.peer.labels[follows{f.db, f.in}]
		if (f.divisions[f.v] == "" || f.peer.divisions[label] == f.divisions[f.v]) && slices.Contains(f.peer.advertised[label], partition) {
			return []string{f.addr}
		}
	}
	return nil
}

func (f testFollowing) Replicas(partition int) int {
	return len(f.Peers(partition))
}

func (f testFollowing) Advertise(partition int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left {
		return
	}
	f.advertised[f.v] = append(f.advertised[f.v], partition)
	for _, other := range f.watchers {
		other.changed()
	}
	if f.divisions[f.v] == "" {
		panic("advertised without a division")
	}
}

func (f testFollowing) Withdraw(partitions ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(partitions) == 0 {
		delete(f.advertised, f.v)
	}
	f.advertised[f.v] = slices.DeleteFunc(f.advertised[f.v], func(p int) bool { return slices.Contains(partitions, p) })
}

func (f testFollowing) Report(data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.divisions[f.v] == "" {
		panic("reported without a division")
	}
	if f.left || f.reports[f.v] == string(data) {
		return
	}
	f.reports[f.v] = string(data)
	for _, other := range f.watchers {
		other.changed()
	}
}

func (f testFollowing) Reports() (map[string]report.Report, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.peer != nil {
		f.peer.mu.Lock()
		defer f.peer.mu.Unlock()
		label := f.peer.labels[follows{f.db, f.in}]
		if r, err := report.Parse([]byte(f.peer.reports[label])); err == nil && f.peer.divisions[label] == f.divisions[f.v] {
			return map[string]report.Report{f.addr: r}, true
		}
	}
	return nil, true
}

// own sets the partitions that the node owns.
func (c *testCluster) own(partitions ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owned = append([]int{}, partitions...) // nil: all
}

// hold says that a peer has partitions of a version.
func (c *testCluster) hold(v string, partitions ...int) {
	c.mu.Lock()
	c.peers[v] = partitions
	c.mu.Unlock()
	c.changed()
}

// other says that another node has other inputs of a version, none if they have no names.
func (c *testCluster) other(v string, inputs ...string) {
	var others []content.Content
	for _, name := range inputs {
		others = append(others, content.Content{Input: content.Input{Name: v, Hash: content.Sum(name)}, Division: content.Sum("any")})
	}
	c.holdsOther(v, others...)
}

// holdsOther says that another node has contents of a version.
func (c *testCluster) holdsOther(v string, others ...content.Content) {
	c.mu.Lock()
	c.others[v] = others
	c.mu.Unlock()
	c.changed()
}

// report returns what this node reports of a content.
func (c *testCluster) report(v string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reports[v]
}

// division returns what this node has told of its division.
func (c *testCluster) division(v string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.divisions[v]
}

// label returns the label of an input that the node follows or has followed; "" of the zero Input.
func (c *testCluster) label(in content.Input) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, label := range c.labels {
		if key.in == in {
			return label
		}
	}
	return ""
}

// take says that others have taken over partitions, of three.
func (c *testCluster) take(partitions ...int) {
	c.mu.Lock()
	c.surplus = partitions
	c.owned = slices.DeleteFunc([]int{0, 1, 2}, func(p int) bool { return slices.Contains(partitions, p) })
	c.mu.Unlock()
	c.changed()
}

func (c *testCluster) follows() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.followed))
}

func (c *testCluster) has(v string) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.advertised[v]))
}

// A deaf listener has no connections.
type deaf struct{ net.Listener }

func (deaf) Close() error { return nil }

func (deaf) Addr() net.Addr { return &net.TCPAddr{} }

// follow starts a node that does everything but answer requests, in a bubble
// of synctest. The result stops it.
func (f *fixture) follow(change func(*Options)) (*Node, func()) {
	f.t.Helper()
	local, err := store.Open(f.store)
	expect.NoError(f.t, err)
	o := Options{Source: f.source, SourceName: f.root, Loads: f.launcher(), Store: local, Listener: deaf{}, Logger: slog.New(slog.NewTextHandler(f.log, nil)),
		Reloadable: Reloadable{DBRemoveTimeout: time.Hour}}
	change(&o)
	n, err := New(o)
	expect.NoError(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	expect.NoError(f.t, n.follower.start(ctx, n.admit))
	n.begin()
	n.following.Go(func() { n.follower.follow(ctx) })
	synctest.Wait() // it has looked at the source, unless that takes its time
	return n, func() {
		cancel()
		n.following.Wait()
		for _, d := range n.follower.dbs {
			expect.NoError(f.t, d.close())
		}
		expect.NoError(f.t, local.Close())
	}
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
		n, stop := f.follow(func(o *Options) {
			o.Cluster, o.VersionRemoveTimeout, o.RefreshPeriod = c, 10*time.Minute, time.Minute
			o.each(requireSuccess)
		})
		defer stop()
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
		if set.Current().Name != "2" {
			t.Fatalf("current is %q", set.Current().Name)
		}
		time.Sleep(7 * time.Minute)
		if !by("1") {
			t.Fatal("it did not stay for its time")
		}
		time.Sleep(9 * time.Minute)
		if s := n.Status().DBs["fruit"].Versions["1"].Nodes["localhost"]; s.State != "REMOVING" || len(c.has("1")) != 2 {
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
			n, stop := f.follow(func(o *Options) {
				o.Cluster, o.VersionRemoveTimeout, o.RefreshPeriod = newCluster(), 10*time.Minute, time.Minute
				o.each(requireSuccess)
				o.Server.PeerSecret = secret
			})
			defer stop()
			set := n.Set([]byte("fruit"))
			time.Sleep(time.Second)
			f.finish("fruit", "2")
			time.Sleep(2 * time.Minute)
			if set.Current().Name != "2" {
				t.Fatalf("current is %q", set.Current().Name)
			}
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
		n, stop := f.follow(func(o *Options) { o.Cluster, o.VersionRemoveTimeout = c, 10*time.Minute })
		defer stop()
		time.Sleep(time.Second)
		check := func(when string, advertised, held []int) {
			t.Helper()
			if diff := cmp.Diff(advertised, c.has("1")); diff != "" {
				t.Errorf("%s, advertised:\n%s", when, diff)
			}
			s := n.Status().DBs["fruit"].Versions["1"].Nodes["localhost"]
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
			_, stop := f.follow(func(o *Options) { o.Cluster = c })
			defer stop()
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
		n, stop := f.follow(func(o *Options) { o.Cluster, o.MinReplication = c, 1 })
		defer stop()
		set := n.Set([]byte("fruit"))
		time.Sleep(time.Second)
		if set.Current().Name != "" {
			t.Fatal("it is active without the partitions of others")
		}
		s := n.Status().DBs["fruit"].Versions["1"].Nodes["localhost"]
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
		if set.Current().Name != "" {
			t.Fatal("it is active without partition 2")
		}
		c.hold("1", 0, 2)
		time.Sleep(time.Second)
		if set.Current().Name != "1" {
			t.Fatal("it does not become active")
		}
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
	defer r.stop()
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
	r.eventually("2 is being removed", func() bool { return r.node("fruit", "2").State == "REMOVING" })
	f.put("fruit", "2", 2, fruit...)
	r.Refresh()
	r.serves("fruit", "2")
	r.eventually("its load has ended", func() bool { return r.node("fruit", "2").Error == "" && len(r.node("fruit", "2").Partitions) == 2 })
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
		n, stop := f.follow(func(o *Options) { o.Cluster, o.VersionRemoveTimeout = c, time.Hour })
		defer stop()
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
		n, stop := f.follow(func(o *Options) { o.Settle, o.RefreshPeriod = 10*time.Second, 4*time.Second })
		defer stop()
		time.Sleep(time.Second)
		f.unmarked("fruit", "2", fruit...)
		f.damage("fruit", "2", "part-r-00000")
		time.Sleep(20 * time.Second)
		if s := n.Status().DBs["fruit"].Versions["2"].Nodes["localhost"]; s.State != "ERROR" {
			t.Fatalf("it has not failed: %+v", s)
		}
		f.remove("fruit", "2", "part-r-00000")
		for i := range 5 {
			f.putFile(filepath.Join(f.root, fmt.Sprintf("fruit/2/part-r-%05d", i)), "2", func(key string) bool {
				return shard.String.Partition([]byte(key), 5) == i
			}, fruit)
			time.Sleep(5 * time.Second)
			if s := n.Status().DBs["fruit"].Versions["2"].Nodes["localhost"]; s.State != "ERROR" || s.Error == "" {
				t.Errorf("with %d files it is %+v", i+1, s)
			}
		}
		time.Sleep(15 * time.Second)
		if got := n.Set([]byte("fruit")).Current().Name; got != "2" {
			t.Errorf("current is %q", got)
		}
	})
}
