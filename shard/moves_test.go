package shard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
)

// loads returns the number of replicas that have to be loaded.
func loads(before, after [][]string) int {
	n := 0
	for p, ids := range after {
		for _, id := range ids {
			if !slices.Contains(before[p], id) {
				n++
			}
		}
	}
	return n
}

// When a node joins or leaves, little more than its share moves: the less, the more partitions it has.
func TestMoves(t *testing.T) {
	for _, test := range []struct {
		nodes, partitions int
		most              float64 // moves, as a multiple of the share of the node; the average over databases
	}{
		{3, 32, 1.3}, {3, 1000, 1.25}, {6, 100, 1.5}, {6, 1000, 1.3}, {10, 1000, 1.5}, {10, 10_000, 1.45}, {30, 1000, 2.1},
	} {
		for _, zones := range []int{1, 3} {
			for _, replicas := range []int{1, 2, 3} {
				s := sample{partitions: test.partitions, replicas: replicas}
				for i := range test.nodes {
					s.members = append(s.members, Member{ShardID: fmt.Sprintf("node-%d", i), Zone: fmt.Sprint(i % zones)})
				}
				joined := s.with(Member{ShardID: "another", Zone: fmt.Sprint(test.nodes % zones)})
				const databases = 10
				join, leave := 0, 0
				for db := range databases {
					before := Assign(Balanced, s.members, s.partitions, s.replicas, fmt.Sprint(db))
					after := Assign(Balanced, joined.members, s.partitions, s.replicas, fmt.Sprint(db))
					join += loads(before, after)
					leave += loads(after, before)
				}
				share := float64(databases*s.partitions*replicas) / float64(test.nodes+1)
				if max(float64(join), float64(leave))/share > test.most {
					t.Errorf("%v, %d zones: %.2f times its share moves when a node joins, %.2f when it leaves; want %.2f",
						s, zones, float64(join)/share, float64(leave)/share, test.most)
				}
			}
		}
	}
}

// The path that docs/design/ASSIGNMENT.md has figures of: nodes of different weights join and leave. What moves is little more
// than the least possible, and loads are within 10 % of the shares.
func TestWeightedNodesJoinAndLeave(t *testing.T) {
	for _, zones := range []int{1, 3} {
		for _, replicas := range []int{1, 2, 3} {
			const databases, partitions = 10, 1000
			moved, least, unfair := 0, 0.0, 0.0
			for db := range databases {
				var before sample
				for _, nodes := range []int{3, 4, 5, 4} {
					s := sample{partitions: partitions, replicas: replicas}
					for i := range nodes {
						s.members = append(s.members, Member{ShardID: fmt.Sprintf("node-%d", i), Weight: []float64{1, 2, 4}[i%3], Zone: fmt.Sprint(i % zones)})
					}
					assigned := Assign(Balanced, s.members, partitions, replicas, fmt.Sprint(db))
					shares := s.shares()
					for id, share := range shares {
						n := 0
						for _, ids := range assigned {
							if slices.Contains(ids, id) {
								n++
							}
						}
						unfair = max(unfair, math.Abs(float64(n)/share-1))
						if before.members != nil {
							least += max(0, share-before.shares()[id])
						}
					}
					if before.members != nil {
						moved += loads(Assign(Balanced, before.members, partitions, replicas, fmt.Sprint(db)), assigned)
					}
					before = s
				}
			}
			t.Logf("%d zones, replication %d: %.2f times the least possible moves; loads within %.1f %%", zones, replicas, float64(moved)/least, 100*unfair)
			if float64(moved) > 1.5*least || unfair > 0.1 {
				t.Error("that is too much")
			}
		}
	}
}

// Nodes of any weights and zones join and leave in any order: the guarantees hold at each step, and in all, little more than
// the least possible moves.
func TestRandomWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	moved, least := 0, 0.0
	for walk := range 20 {
		s := sample{partitions: 300, replicas: 1 + walk%3}
		for i := range 4 {
			s = s.with(randomMember(r, fmt.Sprint("first-", i), 3, walk%4))
		}
		assigned := s.assign()
		for step := range 30 {
			next := s
			if i := r.IntN(len(s.members)); len(s.members) > 3 && r.IntN(2) == 0 {
				next.members = slices.Delete(slices.Clone(s.members), i, i+1)
			} else {
				next = s.with(randomMember(r, fmt.Sprint("node-", step), 3, walk%4))
			}
			now, shares := next.assign(), s.shares()
			next.check(t, now)
			moved += loads(assigned, now)
			for id, share := range next.shares() {
				least += max(0, share-shares[id])
			}
			s, assigned = next, now
		}
	}
	if t.Logf("%.2f times the least possible moves", float64(moved)/least); float64(moved) > 1.5*least {
		t.Error("that is too much")
	}
}

// BenchmarkAssign uses the largest cluster in docs/CLUSTER.md.
func BenchmarkAssign(b *testing.B) {
	for _, zones := range []int{1, 3, 20} {
		s := sample{partitions: 10000, replicas: 3}
		for i := range 1000 {
			s.members = append(s.members, Member{ShardID: fmt.Sprintf("node-%d", i), Zone: fmt.Sprint(i % zones)})
		}
		b.Run(fmt.Sprintf("zones=%d", zones), func(b *testing.B) {
			before := processorTime(b)
			for b.Loop() {
				s.assign()
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
