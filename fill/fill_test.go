package fill_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/fill"
	"sequins/shard"
	"sequins/store"
	"sequins/test/expect"
	"sequins/transfer"
	"sequins/version"
)

const partitions = 8

var plan = store.Manifest{Format: "sequencefile", Partitions: partitions, Partitioner: "string", Aligned: true}

// block returns the block of a partition.
func block(t *testing.T, p int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := blocks.NewWriter(&b, blocks.WriterOptions{Partition: p, Partitions: partitions})
	expect.NoError(t, err)
	for i := range 200 {
		if key := fmt.Appendf(nil, "key-%04d", i); shard.String.Partition(key, partitions) == p {
			expect.NoError(t, w.Add(key, key))
		}
	}
	_, err = w.Finish()
	expect.NoError(t, err)
	return b.Bytes()
}

// input is what a peer says of the block of a partition.
func input(p int) store.Input {
	return store.Input{Partition: p, Hash: strings.Repeat("a", 64), Outline: strings.Repeat("b", 16), Content: "c"}
}

// A peer is another node, which says and gives what a test wants.
type peer struct {
	t    *testing.T
	addr string
	plan string

	mu       sync.Mutex
	held     map[int]bool
	loading  []int
	planning bool
	advances bool // its load does
	progress int64
	busy     int  // how often it is, before it gives a block
	lies     bool // flips bits
	old      bool // of a release without blocks
	down     bool
	starts   bool // it answers one question, and is starting from then on
	asked    bool
	given    []int
	others   int64 // bytes that it gives to other nodes between two questions
	total    int64 // of these
}

func (p *peer) set(change func(p *peer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// hold makes the peer have partitions.
func (p *peer) hold(all ...int) {
	p.set(func(p *peer) {
		for _, partition := range all {
			p.held[partition] = true
			p.loading = slices.DeleteFunc(p.loading, func(l int) bool { return l == partition })
		}
	})
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch q := r.URL.Query(); {
	case p.down:
		panic(http.ErrAbortHandler)
	case p.old:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, "{}")
	case p.starts && p.asked:
		http.Error(w, "this node is starting", http.StatusServiceUnavailable)
	case q.Has("blocks"):
		p.asked = true
		p.total += p.others
		s := transfer.State{Version: "1", Plan: p.plan, Loading: p.loading, Planning: p.planning, Progress: p.progress, Given: p.total}
		for i := range partitions {
			if p.held[i] {
				s.Held = append(s.Held, i)
			}
		}
		if p.advances {
			p.progress++
		}
		if q.Has("inputs") {
			p.loading = nil // it has ended
			for _, i := range s.Held {
				s.Inputs = append(s.Inputs, input(i))
			}
			s.Inputs = append(s.Inputs, store.Input{Partition: -1})
		}
		w.Header().Set("Content-Type", "application/vnd.sequins.blocks+json")
		expect.NoError(p.t, json.NewEncoder(w).Encode(s))
	default:
		partition, err := strconv.Atoi(q.Get("block"))
		expect.NoError(p.t, err)
		p.give(w, partition)
	}
}

func (p *peer) give(w http.ResponseWriter, partition int) {
	switch {
	case !p.held[partition]:
		http.Error(w, "none", http.StatusNotFound)
		return
	case p.busy > 0:
		p.busy--
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	data := block(p.t, partition)
	if p.lies {
		data[len(data)/2] ^= 1
	}
	p.given = append(p.given, partition)
	w.Header().Set("Content-Type", "application/vnd.sequins.block")
	w.Header().Set(transfer.PlanHeader, p.plan)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, err := w.Write(data)
	expect.NoError(p.t, err)
}

const self = "self:9599"

// A cluster is a node that fills a version, and other nodes. All own every partition.
type cluster struct {
	version.Solo
	t      *testing.T
	peers  []*peer
	dir    *store.Dir
	run    *fill.Run
	loaded []int
	// load is what the load does instead.
	load func(mine []int, progress func(int64)) error
}

func (c *cluster) Owners() (all [][]string, _ string) {
	of := []string{self}
	for _, p := range c.peers {
		of = append(of, p.addr)
	}
	for range partitions {
		all = append(all, of)
	}
	return all, self
}

// short are times for tests that wait until they are over.
var short = fill.Times{Silent: 200 * time.Millisecond, Planning: 200 * time.Millisecond, Stalled: 200 * time.Millisecond, Least: 200 * time.Millisecond,
	Most: time.Minute, Busy: 200 * time.Millisecond, Refusing: 2 * time.Second, Poll: 20 * time.Millisecond}

// long are times that are not over within a test.
var long = fill.Times{Silent: time.Hour, Planning: time.Hour, Stalled: time.Hour, Least: time.Hour, Most: time.Hour, Busy: time.Hour, Refusing: time.Hour, Poll: 20 * time.Millisecond}

func newCluster(t *testing.T, others int, times fill.Times) *cluster {
	t.Helper()
	s, err := store.Open(t.TempDir())
	expect.NoError(t, err)
	dir, err := s.Create("db", "1", plan)
	expect.NoError(t, err)
	c := &cluster{t: t, dir: dir}
	for range others {
		p := &peer{t: t, plan: dir.Manifest().PlanHash(), held: map[int]bool{}}
		srv := httptest.NewServer(p)
		t.Cleanup(srv.Close)
		p.addr = strings.TrimPrefix(srv.URL, "http://")
		c.peers = append(c.peers, p)
	}
	log := slog.New(slog.DiscardHandler)
	copies := transfer.New(transfer.Options{Set: func([]byte) *version.Set { return nil }, Logger: log})
	copies.SetLimits(transfer.Limits{Streams: 2})
	t.Cleanup(func() {
		copies.Close()
		expect.NoError(t, s.Close())
	})
	c.run = fill.New(fill.Options{Transfer: copies, DB: "db", Version: "1", Following: c, Times: times, Logger: log})
	return c
}

// source is a load that succeeds.
func (c *cluster) source(mine []int, progress func(int64)) error {
	c.loaded = append(c.loaded, mine...)
	for i, p := range mine {
		expect.NoError(c.t, os.WriteFile(c.dir.BlockPath(p), block(c.t, p), 0o644))
		progress(int64(i))
	}
	if c.load != nil {
		return c.load(mine, progress)
	}
	return nil
}

// fill fills the version, and returns how many partitions were published by copies.
func (c *cluster) fill(load func([]int, func(int64)) error) (copied int, err error) {
	want := []int{0, 1, 2, 3, 4, 5, 6, 7}
	err = c.run.Fill(c.t.Context(), fill.Job{Dir: c.dir, Partitioner: shard.String, Want: want, Load: load, Published: func() { copied++ }})
	return copied, err
}

// complete fails the test unless every block is here.
func (c *cluster) complete() {
	c.t.Helper()
	all, err := c.dir.Complete()
	expect.NoError(c.t, err)
	if len(all) != partitions {
		c.t.Errorf("only %v are here", all)
	}
}

// A node without others, or with nodes of older releases, loads everything at once.
func TestAlone(t *testing.T) {
	for others := range 3 {
		c := newCluster(t, others, long)
		for _, p := range c.peers {
			p.old = true
		}
		copied, err := c.fill(c.source)
		if err != nil || copied > 0 || len(c.loaded) != partitions {
			t.Errorf("%d others: %v, %v, %d copied", others, err, c.loaded, copied)
		}
	}
}

// What other nodes have is copied, and nothing is loaded.
func TestHeldElsewhere(t *testing.T) {
	c := newCluster(t, 2, long)
	c.peers[0].hold(0, 1, 2, 3)
	c.peers[1].hold(4, 5, 6, 7)
	c.peers[1].busy = 1
	if copied, err := c.fill(c.source); err != nil || copied != partitions || len(c.loaded) > 0 {
		t.Errorf("%v: %d copied, %v loaded", err, copied, c.loaded)
	}
	c.complete()
	if all := c.dir.Staging().Inputs(); len(all) != partitions || all[0] != input(0) || all[7] != input(7) {
		t.Errorf("inputs of the blocks: %+v", all)
	}
	if copied, err := c.fill(c.source); err != nil || copied > 0 {
		t.Errorf("%v: %d copied again", err, copied)
	}
}

// Of the blocks of a node that still loads, the inputs are known when it has ended. Those of this node's own blocks stay.
func TestInputsOfBoth(t *testing.T) {
	c := newCluster(t, 1, long)
	other := c.peers[0]
	own := input(0)
	own.Content = "own"
	c.load = func(mine []int, _ func(int64)) error {
		own.Partition = mine[0]
		expect.NoError(t, c.dir.Staging().SetInputs([]store.Input{own}))
		other.hold(0, 1, 2, 3, 4, 5, 6, 7)
		other.set(func(p *peer) { p.loading = []int{7} })
		return nil
	}
	if _, err := c.fill(c.source); err != nil {
		t.Fatal(err)
	}
	if all := c.dir.Staging().Inputs(); len(all) != partitions/2+1 || !slices.Contains(all, own) {
		t.Errorf("inputs of the blocks: %+v", all)
	}
}

// Each of two nodes loads a half, and copies the other one.
func TestShared(t *testing.T) {
	c := newCluster(t, 1, long)
	other := c.peers[0]
	c.load = func(mine []int, _ func(int64)) error {
		other.set(func(p *peer) { p.loading, p.advances = []int{0, 1, 2, 3, 4, 5, 6, 7}, true })
		other.hold(0, 1, 2, 3, 4, 5, 6, 7) // it publishes what it has loaded
		return nil
	}
	copied, err := c.fill(c.source)
	if err != nil || copied != partitions/2 || len(c.loaded) != partitions/2 {
		t.Errorf("%v: %d copied, %v loaded", err, copied, c.loaded)
	}
	c.complete()
}

// Readers that do not begin, plan forever, stall, take too long, go away, lie or have another plan are passed over: what they should have loaded is left, and loaded
// by another Fill.
func TestFaultyReaders(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	tests := map[string]func(p *peer){
		"silent":       func(*peer) {},
		"another plan": func(p *peer) { p.plan = "other" },
		"planning":     func(p *peer) { p.plan, p.planning = "", true },
		"stalled":      func(p *peer) { p.loading = all },
		"slow":         func(p *peer) { p.loading, p.advances = all, true },
		"down":         func(p *peer) { p.down = true },
		"busy forever": func(p *peer) {
			p.busy = 1 << 30
			p.held = map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true}
		},
		"busy with others forever": func(p *peer) {
			p.busy, p.others = 1<<30, 1000
			p.held = map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true}
		},
		"has restarted and is starting": func(p *peer) {
			p.starts = true
			p.held = map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true}
		},
		"lying": func(p *peer) {
			p.lies = true
			p.held = map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true}
		},
	}
	for name, fault := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 1, short)
			c.peers[0].set(fault)
			err := fill.ErrLeft
			fills := 0
			for ; errors.Is(err, fill.ErrLeft) && fills < 10; fills++ {
				_, err = c.fill(c.source)
			}
			if err != nil || len(c.loaded) != partitions || fills > 3 {
				t.Errorf("%v after %d fills, %v loaded", err, fills, c.loaded)
			}
			c.complete()
		})
	}
}

// A block that one node does not deliver comes from another one, and not from the source.
func TestOtherGiver(t *testing.T) {
	c := newCluster(t, 3, long)
	for _, p := range c.peers {
		p.hold(0, 1, 2, 3, 4, 5, 6, 7)
	}
	c.peers[0].lies = true
	c.peers[1].set(func(p *peer) { p.old = true })
	if copied, err := c.fill(c.source); err != nil || copied != partitions || len(c.loaded) > 0 {
		t.Errorf("%v: %d copied, %v loaded", err, copied, c.loaded)
	}
	c.complete()
}

// The error of a load is that of Fill, and the reader of a failed load passes its partitions on.
func TestLoadFails(t *testing.T) {
	c := newCluster(t, 1, long)
	failure := errors.New("no such file")
	if _, err := c.fill(func([]int, func(int64)) error { return failure }); !errors.Is(err, failure) {
		t.Error(err)
	}
	c.run = nil
	c = newCluster(t, 1, short)
	other := c.peers[0]
	other.set(func(p *peer) { p.loading, p.advances = []int{0, 1, 2, 3, 4, 5, 6, 7}, true })
	c.load = func([]int, func(int64)) error {
		other.set(func(p *peer) { p.loading = nil })
		return nil
	}
	if _, err := c.fill(c.source); !errors.Is(err, fill.ErrLeft) {
		t.Error(err)
	}
	if _, err := c.fill(c.source); err != nil {
		t.Error(err)
	}
	c.complete()
}

// Without a load, what other nodes have is copied, and what they are loading is left.
func TestOnlyCopies(t *testing.T) {
	c := newCluster(t, 2, long)
	c.peers[0].hold(0, 1, 2)
	c.peers[1].set(func(p *peer) { p.loading, p.advances = []int{3}, true })
	if copied, err := c.fill(nil); !errors.Is(err, fill.ErrLeft) || copied != 3 {
		t.Errorf("%v: %d copied", err, copied)
	}
	c.peers[0].hold(3, 4, 5, 6, 7)
	if copied, err := c.fill(nil); err != nil || copied != 5 {
		t.Errorf("%v: %d copied", err, copied)
	}
	if _, err := newCluster(t, 0, long).fill(nil); !errors.Is(err, fill.ErrLeft) {
		t.Error(err)
	}
}
