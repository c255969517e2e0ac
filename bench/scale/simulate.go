package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"sequins/shard"
)

// A cluster is the simulated cluster: all databases get a new version at once.
type cluster struct {
	nodes, databases, partitions, replication int // partitions and replication of each database
}

// A way is when a node lists a directory that has changed.
type way string

const (
	naive     way = "at once"   // and again, whenever it has changed since: as the old system does
	coalesced way = "coalesced" // as package zk does
)

// The rules of package zk: see damping, readBudget and readBurst there.
const (
	minInterval = 50 * time.Millisecond
	readBudget  = 128 << 10 // bytes a second
	readBurst   = 2 << 20
)

const (
	servers    = 3
	latency    = 500 * time.Microsecond // one way between a node and its server
	eventBytes = 100                    // of a notification, with all headers
	replyBytes = 120                    // of a reply, beside the names
)

// A simulation is a cluster at one time. Nodes are spread evenly over the servers, each of which sends one listing
// after another.
type simulation struct {
	cluster
	way   way
	sends float64 // bytes a second that a server sends
	name  int
	load  time.Duration
	rnd   *rand.Rand

	now    time.Duration
	events queue
	dirs   []directory
	views  []view          // of each node and directory
	tokens []*rate.Limiter // of each node: the bytes that it may read
	free   [servers]time.Duration

	listings, sent int64
	perSecond      []int64
	began, ended   time.Duration // the first and last advertisement
	lag            time.Duration // from when a version could be switched to until the last node did, at most
	seen           time.Duration // when the last node had seen all
}

type directory struct {
	changes  int
	first    []bool // of each partition: whether it has a replica
	missing  int
	suffices int           // the number of changes after which every partition had a replica,
	complete time.Duration // and when that was
	watching []int32
}

// A view is a node's knowledge of a directory.
type view struct {
	size     int // of the last listing
	changes  int // that it had seen
	stale    bool
	busy     bool // it is going to be listed
	switched bool
}

// event is something that happens at a time.
type event struct {
	at   time.Duration
	n    int // events at one time happen in the order in which they were planned
	kind kind
	view int32
	dir  int32 // with part, for advertise
	part int32
}

type kind uint8

const (
	advertise kind = iota // a node has loaded a partition
	request               // a node asks for a listing
	serve                 // the server's turn to read the directory, and to set the watch
	receive               // the listing is there
)

func newSimulation(c cluster, w way, load time.Duration, sends float64, name int, seed uint64) *simulation {
	s := &simulation{cluster: c, way: w, sends: sends, name: name, load: load, rnd: rand.New(rand.NewPCG(seed, 0))}
	s.views = make([]view, c.nodes*c.databases)
	for range c.nodes {
		s.tokens = append(s.tokens, rate.NewLimiter(readBudget, readBurst))
	}
	for range c.databases {
		d := directory{first: make([]bool, c.partitions), missing: c.partitions}
		for node := range c.nodes {
			d.watching = append(d.watching, int32(node*c.databases+len(s.dirs)))
		}
		s.dirs = append(s.dirs, d)
	}
	s.planLoads()
	return s
}

// planLoads schedules the loads of each node: its partitions one after another in random order. Some nodes are
// faster than others, and some partitions are larger.
func (s *simulation) planLoads() {
	index := map[string]int{}
	var members []shard.Member
	for i := range s.nodes {
		id := fmt.Sprintf("node-%04d", i)
		index[id] = i
		members = append(members, shard.Member{ShardID: id, Weight: 1})
	}
	type part struct{ dir, part int32 }
	work := make([][]part, s.nodes)
	for d := range s.dirs {
		for p, ids := range shard.Assign(shard.Balanced, members, s.partitions, s.replication, fmt.Sprintf("db-%d", d)) {
			for _, id := range ids {
				work[index[id]] = append(work[index[id]], part{int32(d), int32(p)})
			}
		}
	}
	mean := float64(s.load) / float64(s.databases*s.partitions*s.replication) * float64(s.nodes)
	for _, parts := range work {
		s.rnd.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		at, pace := 0.0, mean*(0.8+0.4*s.rnd.Float64())
		for _, p := range parts {
			at += pace * (0.5 + s.rnd.Float64())
			s.events.push(event{at: time.Duration(at), kind: advertise, dir: p.dir, part: p.part})
		}
	}
}

func (s *simulation) run() {
	s.began = s.events.list[0].at
	for len(s.events.list) > 0 {
		e := s.events.pop()
		s.now = e.at
		switch e.kind {
		case advertise:
			s.advertise(e)
		case request:
			s.request(e.view)
		case serve:
			s.serve(e.view)
		case receive:
			s.receive(e.view)
		}
	}
}

func (s *simulation) advertise(e event) {
	d := &s.dirs[e.dir]
	d.changes++
	s.ended = s.now
	if !d.first[e.part] {
		d.first[e.part] = true
		d.missing--
		if d.missing == 0 {
			d.suffices = d.changes
			d.complete = s.now
		}
	}
	for _, v := range d.watching {
		s.count(eventBytes)
		s.views[v].stale = true
		s.list(v, latency)
	}
	d.watching = d.watching[:0]
}

// list has a view listed again after the time that it takes a node to know that it has to.
func (s *simulation) list(v int32, after time.Duration) {
	view := &s.views[v]
	if view.busy || !view.stale {
		return
	}
	view.busy = true
	at := s.now + after
	if s.way == coalesced {
		interval := max(minInterval, time.Duration(view.size)*time.Second/readBudget)
		at += interval + time.Duration(s.rnd.Int64N(int64(interval)))
	}
	s.events.push(event{at: at, kind: request, view: v})
}

func (s *simulation) request(v int32) {
	at := s.now
	if s.way == coalesced {
		now := time.Unix(0, 0).Add(s.now)
		at += s.tokens[int(v)/s.databases].ReserveN(now, min(s.views[v].size, readBurst)).DelayFrom(now)
	}
	server := int(v) / s.databases % servers
	start := max(at+latency, s.free[server])
	s.free[server] = start + s.duration(s.dirs[int(v)%s.databases].changes)
	s.events.push(event{at: start, kind: serve, view: v})
}

func (s *simulation) duration(children int) time.Duration {
	return time.Duration(float64(s.bytes(children)) / s.sends * float64(time.Second))
}

func (s *simulation) bytes(children int) int { return replyBytes + children*(4+s.name) }

// serve reads the current content of the directory. Later changes cause a notification.
func (s *simulation) serve(v int32) {
	d := &s.dirs[int(v)%s.databases]
	view := &s.views[v]
	view.changes, view.size, view.stale = d.changes, d.changes*(4+s.name), false
	d.watching = append(d.watching, v)
	s.listings++
	s.count(s.bytes(d.changes))
	s.events.push(event{at: s.now + s.duration(d.changes) + latency, kind: receive, view: v})
}

func (s *simulation) receive(v int32) {
	d, view := &s.dirs[int(v)%s.databases], &s.views[v]
	view.busy = false
	if !view.switched && d.missing == 0 && view.changes >= d.suffices {
		view.switched = true
		s.lag = max(s.lag, s.now-d.complete)
	}
	if view.changes == s.partitions*s.replication {
		s.seen = s.now
	}
	s.list(v, 0)
}

func (s *simulation) count(bytes int) {
	s.sent += int64(bytes)
	second := int(s.now / time.Second)
	for len(s.perSecond) <= second {
		s.perSecond = append(s.perSecond, 0)
	}
	s.perSecond[second] += int64(bytes)
}

func (s *simulation) print(w io.Writer) {
	const mb = 1e6
	znodes := s.databases * s.partitions * s.replication
	listing := s.bytes(s.partitions * s.replication)
	peak := int64(0)
	for _, n := range s.perSecond {
		peak = max(peak, n)
	}
	fmt.Fprintf(w, "| %d | %d × %d × %d | %s | %d | %.2f MB | %d | %.1f MB | %.1f MB/s | %.0f MB/s | %.0f | %.1f s | %.1f s |\n",
		s.nodes, s.databases, s.partitions, s.replication, s.way, znodes+s.nodes, float64(listing)/mb,
		s.listings/int64(s.nodes), float64(s.sent)/float64(s.nodes)/mb, float64(s.sent)/s.now.Seconds()/mb, float64(peak)/mb,
		float64(znodes)/(s.ended-s.began).Seconds(), s.lag.Seconds(), (s.seen - s.ended).Seconds())
}

// A queue has the events to come: a heap, the next one first.
type queue struct {
	list    []event
	planned int
}

func (q *queue) push(e event) {
	e.n = q.planned
	q.planned++
	q.list = append(q.list, e)
	for at := len(q.list) - 1; at > 0 && q.list[at].before(q.list[(at-1)/2]); at = (at - 1) / 2 {
		q.list[at], q.list[(at-1)/2] = q.list[(at-1)/2], q.list[at]
	}
}

func (q *queue) pop() event {
	first, last := q.list[0], len(q.list)-1
	q.list[0] = q.list[last]
	q.list = q.list[:last]
	for at := 0; ; {
		child := 2*at + 1
		if child+1 < last && q.list[child+1].before(q.list[child]) {
			child++
		}
		if child >= last || !q.list[child].before(q.list[at]) {
			return first
		}
		q.list[at], q.list[child] = q.list[child], q.list[at]
		at = child
	}
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.n < o.n }
