package transfer_test

import (
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
	"sync/atomic"
	"testing"
	"time"

	"sequins/cluster/transfer"
	"sequins/internal/wire"
	"sequins/shard"
	"sequins/store"
	"sequins/test/contents"
	"sequins/test/expect"
	"sequins/version"
	"sequins/version/report"
)

// eight is how many partitions the content of these tests has.
const eight = 8

// all are the partitions.
var all = []int{0, 1, 2, 3, 4, 5, 6, 7}

var plan = store.Manifest{Version: "1", Input: contents.In("1").Hash, Format: "sequencefile", Partitions: eight, Partitioner: "string", Aligned: true}

// blockOf returns the block of a partition.
func blockOf(t *testing.T, p int) []byte { return block(t, p, eight, p, 200) }

// A peer is another node, which reports and gives what a test wants.
type peer struct {
	t    *testing.T
	addr string
	code string // of the content of the blocks that it gives

	mu       sync.Mutex
	held     map[int]bool
	reports  bool
	loading  bool // it reports that
	left     bool // the cluster
	lacks    bool // it has no block that it reports
	busy     int  // how often it is, before it gives a block
	lies     bool // flips bits
	old      bool // of upstream's kind, which give no blocks
	down     int  // how often it breaks off, before it answers
	starting bool
	given    []int
}

func (p *peer) set(change func(p *peer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// hold makes the peer have, and report, partitions.
func (p *peer) hold(all ...int) {
	p.set(func(p *peer) {
		p.reports = true
		for _, partition := range all {
			p.held[partition] = true
		}
	})
}

// report returns the report of the peer; nil if there is none.
func (p *peer) report() *report.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reports || p.left {
		return nil
	}
	r := &report.Report{Loading: p.loading, Blocks: make(map[int]report.Figures)}
	for partition := range eight {
		if p.held[partition] {
			r.Blocks[partition] = report.Figures{}
		}
	}
	return r
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch q := r.URL.Query(); {
	case p.down > 0:
		p.down--
		panic(http.ErrAbortHandler)
	case p.old:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, "{}")
	case p.starting:
		http.Error(w, "this node is starting", http.StatusServiceUnavailable)
	default:
		partition, err := strconv.Atoi(q.Get("block"))
		expect.NoError(p.t, err)
		p.give(w, partition)
	}
}

func (p *peer) give(w http.ResponseWriter, partition int) {
	switch {
	case p.lacks || !p.held[partition]:
		http.Error(w, "none", http.StatusNotFound)
		return
	case p.busy > 0:
		p.busy--
		http.Error(w, "busy", http.StatusTooManyRequests)
		return
	}
	data := blockOf(p.t, partition)
	if p.lies {
		data[len(data)/2] ^= 1
	}
	p.given = append(p.given, partition)
	w.Header().Set("Content-Type", "application/vnd.sequins.block")
	w.Header().Set(wire.Content, p.code)
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
	copies *transfer.Transfer
	run    *transfer.Run
	log    expect.Output
	loaded []int
	// advertised are the addresses that Peers returns.
	advertised []string
	// load is called at the end of a load.
	load func(mine []int) error
	// owners returns the owners of the partitions; nil means that all own every partition.
	owners func() [][]string
}

// Owners implements version.Following.
func (c *cluster) Owners() (all [][]string, _ string) {
	if c.owners != nil {
		return c.owners(), self
	}
	of := []string{self}
	for _, p := range c.peers {
		p.set(func(p *peer) {
			if !p.left {
				of = append(of, p.addr)
			}
		})
	}
	for range eight {
		all = append(all, of)
	}
	return all, self
}

// Reports implements version.Following.
func (c *cluster) Reports() (map[string]report.Report, bool) {
	reports := make(map[string]report.Report)
	for _, p := range c.peers {
		if r := p.report(); r != nil {
			reports[p.addr] = *r
		}
	}
	return reports, true
}

// Peers implements version.Following.
func (c *cluster) Peers(int) []string { return c.advertised }

// short is how long tests wait that wait until it is over, and long is not over within a test.
const (
	short = 200 * time.Millisecond
	long  = time.Hour
	poll  = 20 * time.Millisecond
)

func newCluster(t *testing.T, others int, patience time.Duration) *cluster {
	t.Helper()
	c := &cluster{t: t}
	c.dir, c.copies = newDir(t), newTransfer(t)
	for range others {
		p := &peer{t: t, code: plan.Content().Code(), held: map[int]bool{}}
		srv := httptest.NewServer(p)
		t.Cleanup(srv.Close)
		p.addr = strings.TrimPrefix(srv.URL, "http://")
		c.peers = append(c.peers, p)
	}
	c.run = transfer.NewRun(c.copies, "db", c, c.log.Logger())
	c.run.Hurry(patience, patience, poll)
	return c
}

// newDir returns a directory without blocks.
func newDir(t *testing.T) *store.Dir {
	t.Helper()
	s, err := store.Open(t.TempDir())
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, s.Close()) })
	dir, err := s.Create("db", plan)
	expect.NoError(t, err)
	return dir
}

func newTransfer(t *testing.T) *transfer.Transfer {
	copies := transfer.New(transfer.Options{Set: func([]byte) *version.Set { return nil }, Fits: room, Nodes: wire.NewClient(nil, ""), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(copies.Close)
	return copies
}

// source is a load that succeeds.
func (c *cluster) source(mine []int) error {
	c.loaded = append(c.loaded, mine...)
	for _, p := range mine {
		expect.NoError(c.t, os.WriteFile(c.dir.BlockPath(p), blockOf(c.t, p), 0o644))
	}
	if c.load != nil {
		return c.load(mine)
	}
	return nil
}

// fill fills the version, and returns how many partitions were published by copies.
func (c *cluster) fill(load func([]int) error) (copied int, err error) {
	err = c.run.Fill(c.t.Context(), transfer.Job{Dir: c.dir, Partitioner: shard.String, Want: all, Load: load, Published: func() { copied++ }})
	return copied, err
}

// complete fails the test unless every block is here.
func (c *cluster) complete() {
	c.t.Helper()
	here, err := c.dir.Complete()
	expect.NoError(c.t, err)
	if len(here) != eight {
		c.t.Errorf("only %v are here", here)
	}
}

// A node without others, or that does not copy, loads everything at once.
func TestAlone(t *testing.T) {
	for others := range 2 {
		c := newCluster(t, others, long)
		if others > 0 {
			c.peers[0].hold(all...)
			c.run = transfer.NewRun(nil, "db", c, slog.New(slog.DiscardHandler))
		}
		copied, err := c.fill(c.source)
		if err != nil || copied > 0 || len(c.loaded) != eight {
			t.Errorf("%d others: %v, %v, %d copied", others, err, c.loaded, copied)
		}
	}
}

// What other nodes report is copied, and nothing is loaded.
func TestHeldElsewhere(t *testing.T) {
	c := newCluster(t, 2, long)
	c.peers[0].hold(0, 1, 2, 3)
	c.peers[1].hold(4, 5, 6, 7)
	c.peers[1].busy = 1
	if copied, err := c.fill(c.source); err != nil || copied != eight || len(c.loaded) > 0 {
		t.Errorf("%v: %d copied, %v loaded", err, copied, c.loaded)
	}
	c.complete()
	if copied, err := c.fill(c.source); err != nil || copied > 0 {
		t.Errorf("%v: %d copied again", err, copied)
	}
}

// A node that works is asked again, with pauses, for longer than one that does not.
func TestBusyGiver(t *testing.T) {
	for name, keep := range map[string]func(p *peer, times int){
		"gives to others":               func(p *peer, times int) { p.busy = times },
		"loads, and its answers failed": func(p *peer, times int) { p.loading, p.down = true, times },
	} {
		c := newCluster(t, 1, long)
		c.run.Hurry(short, long, poll)
		c.peers[0].hold(all...)
		c.peers[0].set(func(p *peer) { keep(p, int(10*short/poll)) })
		began := time.Now()
		copied, err := c.fill(c.source)
		if took := time.Since(began); err != nil || copied != eight || len(c.loaded) > 0 || took < 2*short {
			t.Errorf("%s: %v after %v: %d copied, %v loaded", name, err, took, copied, c.loaded)
		}
	}
}

// Nodes that advertise partitions without a report, as those that have lost ZooKeeper, give their blocks, too, those of upstream's kind none.
func TestAdvertised(t *testing.T) {
	for old := range 2 {
		c := newCluster(t, 1, long)
		other := c.peers[0]
		other.held, other.old = map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true}, old > 0
		c.advertised = []string{other.addr}
		copied, err := c.fill(c.source)
		for ; errors.Is(err, transfer.ErrLeft); _, err = c.fill(c.source) {
		}
		if err != nil || copied != eight*(1-old) || len(c.loaded) != eight*old {
			t.Errorf("upstream's kind %d: %v: %d copied, %v loaded", old, err, copied, c.loaded)
		}
		c.complete()
	}
}

// A node that has left and does not answer is not waited for.
func TestGone(t *testing.T) {
	c := newCluster(t, 1, long)
	gone := c.peers[0]
	gone.left, gone.down = true, 1_000_000
	c.advertised = []string{gone.addr}
	_, err := c.fill(c.source)
	for ; errors.Is(err, transfer.ErrLeft); _, err = c.fill(c.source) {
	}
	if err != nil || len(c.loaded) != eight {
		t.Errorf("%v: %v loaded", err, c.loaded)
	}
	c.complete()
}

// Each of two nodes loads a half, and copies the other one as the other node reports it, block by block.
func TestShared(t *testing.T) {
	c := newCluster(t, 1, long)
	other := c.peers[0]
	other.set(func(p *peer) { p.reports, p.loading = true, true })
	var theirs []int
	c.load = func(mine []int) error {
		theirs = slices.DeleteFunc(slices.Clone(all), func(p int) bool { return slices.Contains(mine, p) })
		other.hold(theirs[0])
		return nil
	}
	copied := 0
	err := c.run.Fill(t.Context(), transfer.Job{Dir: c.dir, Partitioner: shard.String, Want: all, Load: c.source, Published: func() {
		if copied++; copied < len(theirs) {
			other.hold(theirs[copied])
		}
	}})
	if err != nil || copied != eight/2 || len(c.loaded) != eight/2 {
		t.Errorf("%v: %d copied, %v loaded", err, copied, c.loaded)
	}
	c.complete()
}

// When the partitions are assigned again during a load, this node goes by the owners that all nodes see then, and reads what it has become the first
// reader of. It does not wait for the node that was it before.
func TestOwnersChange(t *testing.T) {
	c := newCluster(t, 1, long)
	var current atomic.Pointer[[][]string]
	assign := func(shared []int) {
		owners := make([][]string, eight)
		for p := range owners {
			owners[p] = []string{self}
			if slices.Contains(shared, p) {
				owners[p] = append(owners[p], c.peers[0].addr)
			}
		}
		current.Store(&owners)
	}
	c.owners = func() [][]string { return *current.Load() }
	assign(all)
	c.load = func(mine []int) error {
		assign(mine)
		return nil
	}
	if _, err := c.fill(c.source); !errors.Is(err, transfer.ErrLeft) || len(c.loaded) != eight/2 {
		t.Fatalf("%v, %v loaded", err, c.loaded)
	}
	if _, err := c.fill(c.source); err != nil || len(c.loaded) != eight {
		t.Errorf("%v, %v loaded", err, c.loaded)
	}
	c.complete()
}

// Readers that do not deliver what they report, or report nothing, are passed over: what they should have loaded is left, and loaded by another Fill.
func TestFaultyReaders(t *testing.T) {
	tests := map[string]func(p *peer){
		"silent":  func(*peer) {},
		"loading": func(p *peer) { p.reports, p.loading = true, true },
		"another content": func(p *peer) {
			p.hold(all...)
			p.code = contents.Of("1", "other files").Code()
		},
		"down": func(p *peer) {
			p.hold(all...)
			p.down = 1 << 30
		},
		"busy forever": func(p *peer) {
			p.hold(all...)
			p.busy = 1 << 30
		},
		"starting": func(p *peer) {
			p.hold(all...)
			p.starting = true
		},
		"lying": func(p *peer) {
			p.hold(all...)
			p.lies = true
		},
		"lacking": func(p *peer) {
			p.hold(all...)
			p.lacks = true
		},
	}
	for name, fault := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 1, short)
			fault(c.peers[0])
			err := transfer.ErrLeft
			fills := 0
			for ; errors.Is(err, transfer.ErrLeft) && fills < 10; fills++ {
				_, err = c.fill(c.source)
			}
			if err != nil || len(c.loaded) != eight || fills > 6 {
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
		p.hold(all...)
	}
	c.peers[0].lies = true
	c.peers[1].old = true
	if copied, err := c.fill(c.source); err != nil || copied != eight || len(c.loaded) > 0 {
		t.Errorf("%v: %d copied, %v loaded", err, copied, c.loaded)
	}
	c.complete()
	if log := c.log.String(); !strings.Contains(log, "a block of another node is not used") || !strings.Contains(log, "partition=") || !strings.Contains(log, c.peers[0].addr) {
		t.Errorf("the log does not name the block that is refused: %s", log)
	}
}

// The error of a load is that of Fill, and what has been copied stays.
func TestLoadFails(t *testing.T) {
	c := newCluster(t, 1, long)
	failure := errors.New("no such file")
	if _, err := c.fill(func([]int) error { return failure }); !errors.Is(err, failure) {
		t.Error(err)
	}
	c.peers[0].hold(all...)
	if _, err := c.fill(c.source); err != nil || len(c.loaded) > 0 {
		t.Errorf("%v, %v loaded", err, c.loaded)
	}
	c.complete()
}

// Without a load, what other nodes have is copied, and what they are loading is left.
func TestOnlyCopies(t *testing.T) {
	c := newCluster(t, 2, long)
	c.peers[0].hold(0, 1, 2)
	c.peers[1].set(func(p *peer) { p.reports, p.loading = true, true })
	if copied, err := c.fill(nil); !errors.Is(err, transfer.ErrLeft) || copied != 3 {
		t.Errorf("%v: %d copied", err, copied)
	}
	c.peers[0].hold(3, 4, 5, 6, 7)
	if copied, err := c.fill(nil); err != nil || copied != 5 {
		t.Errorf("%v: %d copied", err, copied)
	}
	if _, err := newCluster(t, 0, long).fill(nil); !errors.Is(err, transfer.ErrLeft) {
		t.Error(err)
	}
}
