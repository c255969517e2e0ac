package shard

import (
	"fmt"
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
		{3, 32, 1.3}, {3, 1000, 1.25}, {6, 100, 1.5}, {6, 1000, 1.3}, {10, 1000, 1.5}, {10, 10_000, 1.4}, {30, 1000, 2.1},
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
