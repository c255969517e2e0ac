package reads

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sequins/blocks"
	"sequins/internal/merge"
	"sequins/internal/sleep"
	"sequins/proxy"
	"sequins/version"
)

// Scan is an ordered read of one version. Its methods are for one goroutine, until Release of its Read.
//
// It merges the records of local blocks and of pages that other nodes answer with, see pager. It holds one reference to
// the version, of this node. Other nodes hold none between two pages, but keep the version as long as pages are asked for.
type Scan struct {
	r    *Read
	in   interval
	keys bool // without values
	// limit is the number of records after which the scan ends, 0 for none. A peer's page request has one more, to know
	// whether a record follows.
	limit   int64
	records int64 // that Next has moved to
	full    bool  // ended at limit, before the end of the range

	m       merge.Tree[source]
	current *merge.Leaf[source] // with the current record; nil before the first
	item    scanned
	last    []byte // the key before the current one, if there are records
	ended   bool
	outcome Outcome

	replaced int       // sources, see replace
	paused   time.Time // the end of the last pause of replace
	lost     map[int]bool
	span     int // of a local block's iterator, in bytes
	pagers   int // opened so far
	pageSize int // in bytes

	ctx      context.Context // ends with the client's, and with Reader.Stop
	cancel   context.CancelFunc
	detach   func() bool
	running  sync.WaitGroup // goroutines of pagers
	fields   []proxy.Field
	reserved int64 // in budget, see Reader.reserveScan
	budget   *atomic.Int64
	leaving  time.Time
}

// scanned is the value of a record: in memory if it has up to blocks.LargeValue bytes.
type scanned struct {
	small  []byte
	length int64
	large  bool
	hash   uint64       // of a large value, see blocks.Value.Hash
	local  blocks.Value // of a large value on this node
}

const (
	// spanBudget and pageBudget limit what one scan reads ahead, in bytes, from local blocks and from other nodes.
	// The least spans and pages may exceed them if there are thousands of partitions.
	spanBudget = 8 << 20
	pageBudget = 16 << 20
	minSpan    = 4 << 10
	maxSpan    = 1 << 20
)

// Scan begins to read the records of a range in byte order, all of the same version. q.Key is not used. After
// Found, Next moves to the first record. q.Head only acquires the version. The other outcomes are the reasons of Do, and
// BadCursor, Expired, Behind and Busy. The slices of g must not change until Release. The scan ends with ctx.
func (r *Read) Scan(ctx context.Context, q *Query, g *Range) (*Scan, Outcome) {
	in := g.interval()
	if o := r.openRange(q, g, &in); o != Found {
		return nil, o
	}
	r.counts = r.db.counts.Scans
	s := r.newScan(ctx, in, g.KeysOnly, g.Limit)
	if q.Head {
		s.ended = true
		return s, Found
	}
	if o := r.goneIfReplaced(s.begin(allPartitions(r.handle))); o == Gone && g.After != nil {
		return nil, Expired
	} else if o != Found {
		return nil, o
	}
	return s, Found
}

func allPartitions(h *version.Handle) []int {
	all := make([]int, h.Partitions)
	for p := range all {
		all[p] = p
	}
	return all
}

// newScan returns a scan without sources. It belongs to r until LetGo.
func (r *Read) newScan(ctx context.Context, in interval, keysOnly bool, limit int64) *Scan {
	if limit == maxLimit { // one more is asked for, and no version has as many
		limit = 0
	}
	s := &Scan{r: r, in: in, keys: keysOnly, limit: limit, lost: map[int]bool{}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.detach = context.AfterFunc(r.reader.ending, s.cancel)
	s.fields = slices.Clone(r.fields(nil))
	r.scan = s
	return s
}

// begin opens the sources and moves each to its first record.
func (s *Scan) begin(partitions []int) Outcome {
	if s.in.empty() || len(partitions) == 0 {
		s.ended = true
		return Found
	}
	bytes, span := s.r.readAhead(partitions)
	if !s.r.reader.reserveScan(s, bytes) {
		return Busy
	}
	return s.start(partitions, span)
}

// start is begin for a scan whose memory is reserved.
func (s *Scan) start(partitions []int, span int) Outcome {
	s.span = span
	if s.outcome = s.open(partitions, s.in.start, nil, 0); s.outcome == Found {
		s.prime(0)
	}
	return s.outcome
}

// readAhead returns how many bytes a scan of some partitions may hold, and the span of its iterators.
func (r *Read) readAhead(partitions []int) (bytes int64, span int) {
	here := 0
	for _, p := range partitions {
		if r.handle.Has(p) {
			here++
		}
	}
	span = min(max(spanBudget/2/max(here, 1), minSpan), maxSpan)
	away := int64(len(partitions) - here)
	return int64(here)*int64(2*span) + min(away*2*maxPage, max(pageBudget, away*2*minPage)), span
}

// open adds the sources of partitions, from start on. avoid are nodes that have just failed, tries is how often all have.
func (s *Scan) open(partitions []int, start []byte, avoid []string, tries int) Outcome {
	var away []partitionKeys
	for _, p := range partitions {
		b := s.r.handle.Block(p)
		if b == nil || s.lost[p] {
			away = append(away, partitionKeys{partition: p})
			continue
		}
		s.add(&localSource{partition: p, block: b, it: b.IterWithin(start, s.in.end, s.span)})
	}
	r := s.r
	switch {
	case len(away) == 0:
		return Found
	case r.query.fromPeer() && s.lost[away[0].partition]:
		return Unreadable
	case r.query.fromPeer():
		return NotLocal
	case r.reader.opts.Proxy == nil:
		return Unreadable
	}
	groups := r.replicaGroups(away, avoid)
	if s.records == 0 && slices.ContainsFunc(groups, func(g *replicaGroup) bool { return len(g.peers) == 0 }) {
		return Unreachable
	}
	s.pagers += len(groups)
	s.pageSize = min(max(pageBudget/2/s.pagers, minPage), maxPage)
	for _, g := range groups { // all ask at once
		for some := range slices.Chunk(g.parts, maxPagePartitions) {
			p := &pager{s: s, peers: g.peers, avoid: avoid, tries: tries, size: firstPage, answers: make(chan page, 1)}
			p.page = page{more: true, last: start}
			for _, part := range some {
				p.parts = append(p.parts, part.partition)
			}
			slices.Sort(p.parts)
			p.ask()
			s.add(p)
		}
	}
	return Found
}

func (s *Scan) add(src source) { s.m.Leaves = append(s.m.Leaves, merge.Leaf[source]{Source: src}) }

// prime moves the leaves from n on to their first records, also those that it adds, and plays their matches.
func (s *Scan) prime(n int) {
	for ; n < len(s.m.Leaves) && s.outcome == Found; n++ {
		s.step(n)
	}
	if s.outcome == Found {
		s.m.Build()
	}
}

// step moves a leaf to its next record. If its source fails, others take its place, as new leaves.
func (s *Scan) step(i int) {
	l := &s.m.Leaves[i]
	if l.Source.next() {
		l.Set(l.Source.key())
		return
	}
	l.Done = true
	start := s.in.start
	if s.records > 0 {
		start = successor(s.last)
	}
	if o := s.replace(l.Source, start); o != Found {
		s.outcome = o
	}
}

const (
	// maxReplaced limits how often a scan replaces a source, as its partitions can fail or move again and again.
	maxReplaced = 100
	// fetchTries is how often a page is requested from all nodes in the middle of a scan: a client that has read for minutes
	// should not begin again because one node restarts.
	fetchTries = 6
)

// fetchPause is the pause after the first failure, which doubles. Tests set it.
var fetchPause = 50 * time.Millisecond

// replace opens the partitions of a source that has failed again, from start on. It does nothing for a source that is at
// its end.
func (s *Scan) replace(src source, start []byte) Outcome {
	o, again, tries := Unreachable, [][]int{src.partitions()}, 0
	var avoid []string
	switch src := src.(type) {
	case *localSource:
		err := src.it.Err()
		if err == nil {
			return Found
		}
		s.lost[src.partition] = true // and is not read again by this scan
		s.r.report(src.partition, src.block, err)
		o = Unreadable
	case *pager:
		if src.failed == nil {
			return Found
		}
		n := len(src.parts)
		asked := slices.Concat(src.avoid, src.peers)
		switch {
		case s.ctx.Err() != nil:
			return GivenUp
		case n > 1 && errors.Is(src.failed, proxy.ErrAbsent): // nodes that lack some of the partitions may hold others
			again = [][]int{src.parts[:n/2], src.parts[n/2:]}
		case s.areOn(src.parts, asked):
			avoid = asked
		case s.records > 0 && src.tries < fetchTries-1: // there is no other node, and the client cannot get a status any more
			if src.asked.After(s.paused) { // one pause is for all pages that have failed by then
				_ = sleep.For(s.ctx, fetchPause<<src.tries)
				s.paused = time.Now()
			}
			tries = src.tries + 1
		default:
			o = s.r.fetchError(src.peers, src.failed)
			if o == Unreachable && slices.ContainsFunc(src.parts, func(p int) bool { return s.lost[p] }) {
				return Unreadable
			}
			return o
		}
	}
	if s.replaced++; s.replaced > maxReplaced+4*s.r.handle.Partitions {
		return o
	}
	for _, partitions := range again {
		if got := s.open(partitions, start, avoid, tries); got != Found && o != Unreadable {
			return got
		} else if got != Found {
			return Unreadable
		}
	}
	return Found
}

// areOn reports whether some of the partitions are on nodes that have not been asked.
func (s *Scan) areOn(partitions []int, asked []string) bool {
	return slices.ContainsFunc(partitions, func(p int) bool {
		return slices.ContainsFunc(s.r.peers(p), func(addr string) bool { return !slices.Contains(asked, addr) })
	})
}

// Next moves to the next record. It returns false at the end of the range, after Range.Limit records, and after an error:
// see Outcome.
func (s *Scan) Next() bool {
	if s.ended || s.outcome != Found {
		return false
	}
	more := s.advance()
	if s.limit > 0 && s.records == s.limit { // an error behind them is not one of this scan: the client goes on from its cursor
		s.full, s.ended, s.outcome = more || s.outcome != Found, true, Found
		return false
	}
	if !more {
		return false
	}
	s.records++
	if !s.keys {
		s.item = s.current.Source.value()
	}
	return true
}

// advance moves to the record with the next key.
func (s *Scan) advance() bool {
	if s.current != nil {
		s.last = append(s.last[:0], s.current.Key...)
		i, n := s.m.First(), len(s.m.Leaves)
		if s.step(i); len(s.m.Leaves) > n {
			s.prime(n)
		} else if s.outcome == Found {
			s.m.Replay(i)
		}
	}
	if s.outcome != Found {
		return false
	}
	if s.current = s.m.Winner(); s.current == nil {
		s.ended = true
		return false
	}
	if s.records > 0 && bytes.Compare(s.current.Key, s.last) <= 0 {
		s.r.reader.log.Error("ordered read: keys out of order", "db", s.r.db.name, "version", s.r.handle.Name, "partitions", s.current.Source.partitions())
		s.outcome = Unreadable
		return false
	}
	return true
}

// Key returns the key of the current record, valid until Next.
func (s *Scan) Key() []byte { return s.current.Key }

// Value returns the current value, valid until Next; nil if it is large, or if there are keys only. See Open.
func (s *Scan) Value() []byte { return s.item.small }

// Large reports whether the current value has more than blocks.LargeValue bytes. It is read with Open.
func (s *Scan) Large() bool { return s.item.large }

// Length returns the length of the current value in bytes; 0 if there are keys only.
func (s *Scan) Length() int64 { return s.item.length }

// KeysOnly reports whether there are only keys.
func (s *Scan) KeysOnly() bool { return s.keys }

// Records returns the number of records that Next has moved to.
func (s *Scan) Records() int64 { return s.records }

// Outcome returns Found, or the reason why the scan has ended early.
func (s *Scan) Outcome() Outcome { return s.outcome }

// Cursor returns the cursor behind the last record if there are more records in the range, or nil.
func (s *Scan) Cursor() []byte {
	if !s.full {
		return nil
	}
	return s.CursorBehind(s.last)
}

// CursorBehind returns the cursor behind a key.
func (s *Scan) CursorBehind(key []byte) []byte {
	c := cursor{content: s.r.handle.Content, last: key, end: s.in.end}
	return c.encode(s.r.db.name)
}

// Fail ends the scan: the front end cannot send its records.
func (s *Scan) Fail(o Outcome) {
	if s.outcome == Found {
		s.outcome = o
	}
	s.r.body.Outcome = s.outcome
}

// leavingLimit is how long a scan may go on after the removal of its version has begun, however fast the client is.
const leavingLimit = time.Hour

// Hurry ends the scan with TooSlow if it delays the removal of the version for too long. The front end calls it after it
// has sent bytes in total, for which it has waited so long. It returns false if the scan has ended.
func (s *Scan) Hurry(sent int64, waited time.Duration) bool {
	if s.r.handle == nil || !s.r.handle.Leaving() {
		return true
	}
	if s.leaving.IsZero() {
		s.leaving = time.Now()
	}
	if !s.r.delaysRemoval(sent, waited) && time.Since(s.leaving) < leavingLimit {
		return true
	}
	s.Fail(TooSlow)
	s.r.reader.log.Error("a client was cut off", "target", s.r.target(), "version", s.r.handle.Name, "error", errTooSlow)
	return false
}

// scanUnit is the memory, in bytes, of an ordered read that counts once.
const scanUnit = 64 << 20

// reserveScan counts a scan that may hold some bytes, until close. It returns false if there are too many; one is
// never too many.
func (rd *Reader) reserveScan(s *Scan, bytes int64) bool {
	running, limit := &rd.scans, int64(rd.opts.MaxScans)
	if s.r.query.fromPeer() {
		running, limit = &rd.pages, 4*limit
	}
	n, ok := takeScans(running, limit, 1+bytes/scanUnit)
	if ok {
		s.reserved, s.budget = n, running
	}
	return ok
}

// takeScans counts n scans, or as many as there may be, if they are within the limit.
func takeScans(running *atomic.Int64, limit, n int64) (taken int64, ok bool) {
	n = min(n, limit)
	if running.Add(n) > limit {
		running.Add(-n)
		return 0, false
	}
	return n, true
}

// close waits for the requests to other nodes and gives back what the scan has reserved.
func (s *Scan) close() {
	s.detach()
	s.cancel()
	s.running.Wait()
	if s.budget != nil {
		s.budget.Add(-s.reserved)
	}
	s.m = merge.Tree[source]{}
}
