package shard

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
)

// loads returns the number of replicas that have to be loaded.
func loads(held, assigned [][]string) int {
	n := 0
	for p, ids := range assigned {
		for _, id := range ids {
			if p >= len(held) || !slices.Contains(held[p], id) {
				n++
			}
		}
	}
	return n
}

// An eleventh node joins ten: at most 1/11 of the replicas move, and no more when
// it leaves.
func TestEleventhNode(t *testing.T) {
	for _, zones := range []int{1, 2, 3, 5, 10} {
		for _, replicas := range []int{1, 2, 3} {
			for _, partitions := range []int{1, 7, 64, 100, 1000, 4999} {
				s := sample{partitions: partitions, replicas: replicas}
				for i := range 10 {
					s.members = append(s.members, Member{ShardID: fmt.Sprintf("node-%d", i), Zone: fmt.Sprint(i % zones)})
				}
				before := s.assign(nil)
				joined := s.with(Member{ShardID: "node-10", Zone: "0"})
				after := joined.assign(before)
				limit := (partitions*replicas + 10) / 11
				if zones > 1 {
					limit++ // see TestMoves
				}
				if n := loads(before, after); n > limit {
					t.Errorf("%v, %d zones: %d of %d replicas move when an eleventh joins", s, zones, n, partitions*replicas)
				}
				if n := loads(after, s.assign(after)); n > limit {
					t.Errorf("%v, %d zones: %d of %d replicas move when the eleventh leaves", s, zones, n, partitions*replicas)
				}
			}
		}
	}
}

// change adds or removes a node.
func change(r *rand.Rand, s sample) (changed sample, due float64) {
	if r.IntN(2) == 0 && len(s.members) > s.replicas {
		i := r.IntN(len(s.members))
		return s.without(i), s.shares()[s.members[i].ShardID]
	}
	changed = s.with(randomMember(r, "another", 1+r.IntN(8), r.IntN(5)))
	return changed, changed.shares()["another"]
}

// A node that joins or leaves moves its share, rounded up, and nothing else. If
// zones, or nodes that hold most partitions, leave little choice, a replica may
// need an exchange: then up to twice that is moved, and what exceeds the new
// share of a zone.
func TestMoves(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 200 {
		s := randomSample(r, 1000, 10000)
		if len(s.members) < s.replicas {
			continue
		}
		changed, due := change(r, s)
		if i%2 == 0 {
			s.members, changed.members = unzoned(s.members), unzoned(changed.members)
		}
		before := s.assign(nil)
		after := changed.assign(before)
		changed.check(t, after, false)
		limit := int(math.Ceil(due-1e-9)) + 1
		if i%2 == 1 || changed.heaviest() > float64(s.partitions)/2 {
			limit = 2*limit + 2*crowded(changed, before)
		}
		if n := loads(before, after); n > limit {
			t.Errorf("%v, then %d: %d replicas move, its share is %.2f", s, len(changed.members), n, due)
		}
	}
}

func (s sample) heaviest() float64 { return slices.Max(slices.Collect(maps.Values(s.shares()))) }

func unzoned(members []Member) []Member {
	members = slices.Clone(members)
	for i := range members {
		members[i].Zone = ""
	}
	return members
}

// crowded returns the number of held replicas above the maximum of their zones.
func crowded(s sample, held [][]string) int {
	d := newDivision(distinctShards(s.members), s.partitions, min(s.replicas, len(s.members)), "db")
	d.hold(held)
	n := 0
	for p := range d.on {
		for z := range d.most {
			n += max(0, d.count(p, z)-d.most[z])
		}
	}
	return n
}

// While an assignment is carried out it does not change, whatever has been loaded
// and dropped so far: no node loads what is then assigned to another. If chains
// of moves were needed, it may change a little.
func TestCarriedOut(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 150 {
		s := randomSample(r, 300, 2000)
		var held [][]string
		if i%3 != 0 { // the first assignment of a new version never changes
			held = s.assign(nil)
			s, _ = change(r, s)
		}
		first := s.assign(held)
		made, changes := carryOut(r, s, held)
		if i%3 == 0 && changes > 0 {
			t.Errorf("%v: %d replicas were assigned to others meanwhile", s, changes)
		}
		if want := loads(held, first); made > want+want/20+4 {
			t.Errorf("%v: %d replicas were made, %d would have been enough", s, made, want)
		}
	}
}

// carryOut loads replicas in random order, and drops surplus ones of complete
// partitions, until the assignment is reached. It counts the loads, and the
// changes of the assignment meanwhile.
func carryOut(r *rand.Rand, s sample, held [][]string) (made, changes int) {
	now := make([][]string, s.partitions)
	for p := range held {
		now[p] = slices.Clone(held[p])
	}
	goal := s.assign(now)
	for {
		next := s.assign(now)
		changes += loads(goal, next)
		goal = next
		if loads(now, goal) == 0 {
			return made, changes
		}
		for p, ids := range goal {
			missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(now[p], id) })
			for _, id := range missing {
				if r.IntN(3) == 0 {
					now[p] = append(now[p], id)
					made++
				}
			}
			if len(missing) == 0 && r.IntN(2) == 0 {
				now[p] = slices.Clone(ids)
			}
		}
	}
}

// No assignment needs fewer new replicas, or only few less.
func TestFewestMoves(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for i := range 300 {
		s := randomSample(r, 20, 60)
		held := s.assign(nil)
		slack := 2
		if i%3 > 0 {
			s, _ = change(r, s)
		} else {
			held = scattered(r, s)
			slack = 8
		}
		got := loads(held, s.assign(held))
		if fewest := s.fewest(held); got < fewest || got > fewest+slack {
			t.Errorf("%v: %d new replicas, %d are enough", s, got, fewest)
		}
	}
}

// fewest returns how few new replicas an equally balanced assignment can need:
// the minimum-cost flow from partitions through zones to shards.
func (s sample) fewest(held [][]string) int {
	d := newDivision(distinctShards(s.members), s.partitions, min(s.replicas, len(s.members)), "db")
	d.hold(held)
	var n network
	source, sink, shards := n.node(), n.node(), make([]int, len(d.shards))
	for i, quota := range d.quota {
		shards[i] = n.node()
		n.edge(shards[i], sink, quota, 0)
	}
	for _, on := range d.on {
		partition := n.node()
		n.edge(source, partition, d.replicas, 0)
		zones := make([]int, d.zones)
		for z, most := range d.most {
			zones[z] = n.node()
			n.edge(partition, zones[z], most, 0)
		}
		for i, z := range d.zone {
			cost := 1
			if slices.Contains(on, int32(i)) {
				cost = 0
			}
			n.edge(zones[z], shards[i], 1, cost)
		}
	}
	return n.cheapest(source, sink)
}

// network is a graph for minimum-cost flows. Edges 2i and 2i+1 are each other's
// reverse.
type network struct {
	to, room, cost []int
	out            [][]int
}

func (n *network) node() int {
	n.out = append(n.out, nil)
	return len(n.out) - 1
}

func (n *network) edge(from, to, room, cost int) {
	n.out[from] = append(n.out[from], len(n.to))
	n.out[to] = append(n.out[to], len(n.to)+1)
	n.to = append(n.to, to, from)
	n.room = append(n.room, room, 0)
	n.cost = append(n.cost, cost, -cost)
}

// cheapest returns the cost of the maximum flow, found by successive shortest
// paths.
func (n *network) cheapest(source, sink int) (cost int) {
	for {
		distance, via := n.distances(source)
		if via[sink] < 0 {
			return cost
		}
		cost += distance[sink]
		for at := sink; at != source; at = n.to[via[at]^1] {
			n.room[via[at]]--
			n.room[via[at]^1]++
		}
	}
}

// distances returns the distances from one node, and the edges on the shortest
// paths.
func (n *network) distances(source int) (distance, via []int) {
	distance, via = make([]int, len(n.out)), make([]int, len(n.out))
	waiting := make([]bool, len(n.out))
	for i := range via {
		distance[i], via[i] = math.MaxInt32, -1
	}
	distance[source] = 0
	for queue := []int{source}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		waiting[at] = false
		for _, e := range n.out[at] {
			to := n.to[e]
			if n.room[e] == 0 || distance[at]+n.cost[e] >= distance[to] {
				continue
			}
			distance[to], via[to] = distance[at]+n.cost[e], e
			if !waiting[to] {
				waiting[to] = true
				queue = append(queue, to)
			}
		}
	}
	return distance, via
}

// BenchmarkAssign uses the largest cluster in docs/CLUSTER.md.
func BenchmarkAssign(b *testing.B) {
	for _, zones := range []int{1, 3, 20} {
		s := sample{partitions: 10000, replicas: 3}
		for i := range 1000 {
			s.members = append(s.members, Member{ShardID: fmt.Sprintf("node-%d", i), Zone: fmt.Sprint(i % zones)})
		}
		held := s.assign(nil)
		cases := []struct {
			name   string
			sample sample
			held   [][]string
		}{
			{"new", s, nil},
			{"unchanged", s, held},
			{"join", s.with(Member{ShardID: "another", Zone: "0"}), held},
			{"leave", s.without(500), held},
			{"from round_robin", s, Assign(RoundRobin, s.members, s.partitions, s.replicas, "db", nil)},
		}
		for _, c := range cases {
			b.Run(fmt.Sprintf("zones=%d/%s", zones, c.name), func(b *testing.B) {
				before := processorTime(b)
				for b.Loop() {
					c.sample.assign(c.held)
				}
				b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
