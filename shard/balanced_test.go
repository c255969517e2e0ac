package shard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sample is a cluster and a version.
type sample struct {
	members              []Member
	partitions, replicas int
}

// randomSample returns a sample of up to that many nodes and partitions, small
// numbers as often as large ones, with various kinds of weights and zones.
func randomSample(r *rand.Rand, nodes, partitions int) sample {
	upTo := func(n int) int { return int(math.Exp(r.Float64() * math.Log(float64(n)+1))) }
	s := sample{partitions: upTo(partitions), replicas: 1 + r.IntN(4)}
	zones, weights := 1+r.IntN(1+r.IntN(8)), r.IntN(5)
	for i := range upTo(nodes) {
		s.members = append(s.members, randomMember(r, fmt.Sprintf("node-%d", i), zones, weights))
	}
	return s
}

func randomMember(r *rand.Rand, id string, zones, weights int) Member {
	m := Member{ShardID: id, Zone: fmt.Sprintf("zone-%d", r.IntN(zones)), Weight: 1}
	switch weights {
	case 1:
		m.Weight = float64(1 + r.IntN(4))
	case 2:
		m.Weight = float64(500+r.IntN(1000)) / 1000
	case 3:
		m.Weight = math.Ceil(1000*math.Exp(r.NormFloat64())) / 1000 // from about 0.05 to 20
	}
	return m
}

func (s sample) String() string {
	return fmt.Sprintf("%d nodes, %d partitions, replication %d", len(s.members), s.partitions, s.replicas)
}

func (s sample) assign() [][]string {
	return Assign(Balanced, s.members, s.partitions, s.replicas, "db")
}

func (s sample) with(m Member) sample {
	s.members = append(slices.Clone(s.members), m)
	return s
}

// shares returns each member's share: proportional to its weight, and at most one
// replica of each partition.
func (s sample) shares() map[string]float64 {
	shares := map[string]float64{}
	for full := -1; full < len(shares); {
		full = len(shares)
		total, weight := float64(s.partitions*(min(s.replicas, len(s.members))-full)), 0.0
		for _, m := range s.members {
			if _, ok := shares[m.ShardID]; !ok {
				weight += m.Weight
			}
		}
		due := map[string]float64{}
		for _, m := range s.members {
			if _, ok := shares[m.ShardID]; !ok {
				due[m.ShardID] = total * m.Weight / weight
			}
		}
		for id, share := range due {
			if share >= float64(s.partitions) {
				shares[id] = float64(s.partitions)
			}
		}
		if len(shares) == full {
			for id, share := range due {
				shares[id] = share
			}
			return shares
		}
	}
	return shares
}

// check checks the guarantees of balanced.
func (s sample) check(t *testing.T, assigned [][]string) {
	t.Helper()
	replicas := min(s.replicas, len(s.members))
	roundUp := func(share float64) int { return int(math.Ceil(share - 1e-6)) }
	load, zone, zoneShare := map[string]int{}, map[string]string{}, map[string]float64{}
	shares := s.shares()
	for _, m := range s.members {
		zone[m.ShardID] = m.Zone
		zoneShare[m.Zone] += shares[m.ShardID] / float64(s.partitions)
	}
	for p, ids := range assigned {
		if len(ids) != replicas || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != replicas {
			t.Fatalf("%v: partition %d is on %q", s, p, ids)
		}
		here := map[string]int{}
		for _, id := range ids {
			load[id]++
			here[zone[id]]++
		}
		for z, n := range here {
			if n > roundUp(zoneShare[z]) {
				t.Fatalf("%v: partition %d has %d replicas in %s, whose share is %v", s, p, n, z, zoneShare[z])
			}
		}
	}
	for id, share := range shares {
		if load[id] > roundUp(share) {
			t.Fatalf("%v: %s has %d partitions, its share is %v", s, id, load[id], share)
		}
	}
}

// No load exceeds the share, rounded up; replicas are on different shards, and no
// more of them in a zone than its share; the order of the input does not matter.
func TestBalanced(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	samples := []sample{{partitions: 10000, replicas: 3}}
	for i := range 1000 {
		samples[0].members = append(samples[0].members, randomMember(r, fmt.Sprintf("node-%d", i), 3, i%5))
	}
	for range 50 {
		samples = append(samples, randomSample(r, 1000, 10000))
	}
	for _, s := range samples {
		assigned := s.assign()
		s.check(t, assigned)
		r.Shuffle(len(s.members), func(i, j int) { s.members[i], s.members[j] = s.members[j], s.members[i] })
		same(t, s, "in another order", assigned, s.assign())
	}
}

func same(t *testing.T, s sample, what string, want, got [][]string) {
	t.Helper()
	for p := range want {
		if !slices.Equal(want[p], got[p]) {
			t.Fatalf("%v, %s: partition %d is on %q, was on %q", s, what, p, got[p], want[p])
		}
	}
}

// A partition is in as many zones as it has replicas, unless a zone's share is
// more than one replica of each; then that zone has two of some.
func TestZones(t *testing.T) {
	tests := map[string]struct {
		zones string // one letter per node
		two   bool   // every partition with two replicas is in two zones
		three bool   // every partition with three replicas is in three
	}{
		"one for each":      {"abc", true, true},
		"even":              {"aabbcc", true, true},
		"two":               {"aaabbb", true, false},
		"a small one":       {"aaabbbc", true, false},
		"a large one":       {"aaaabc", false, false},
		"large, just right": {"aaabbc", true, false},
		"many":              {"abcdefgh", true, true},
		"none":              {"      ", false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sample{partitions: 120}
			for i, zone := range test.zones {
				s.members = append(s.members, Member{ShardID: fmt.Sprint(i), Zone: string(zone), Weight: 1})
			}
			for replicas, want := range map[int]bool{2: test.two, 3: test.three} {
				s.replicas = replicas
				spread := true
				for _, ids := range s.assign() {
					zones := map[byte]bool{}
					for _, id := range ids {
						zones[test.zones[id[0]-'0']] = true
					}
					spread = spread && len(zones) == replicas
				}
				if spread != want {
					t.Errorf("all %d replicas in different zones: %v, want %v", replicas, spread, want)
				}
			}
		})
	}
}

// Databases with few partitions are not all on the same nodes, nor only on the
// heavy ones.
func TestManyDatabases(t *testing.T) {
	var members []Member
	for i := range 20 {
		members = append(members, Member{ShardID: fmt.Sprint(i), Weight: float64(1 + i%2)})
	}
	const databases = 3000
	load := map[string]float64{}
	for db := range databases {
		for _, ids := range Assign(Balanced, members, 1, 2, fmt.Sprintf("db-%d", db)) {
			for _, id := range ids {
				load[id]++
			}
		}
	}
	for _, m := range members {
		if want := databases * 2 * m.Weight / 30; math.Abs(load[m.ShardID]/want-1) > 0.2 {
			t.Errorf("shard %s of weight %v has %v of %d databases, its share is %v", m.ShardID, m.Weight, load[m.ShardID], databases, want)
		}
	}
}

// When a node is lost, its work is shared by all others: the replicas of its
// partitions are spread over the cluster.
func TestReplicasAreScattered(t *testing.T) {
	s := sample{partitions: 5000, replicas: 2}
	for i := range 50 {
		s.members = append(s.members, Member{ShardID: fmt.Sprint(i)})
	}
	shared := map[[2]string]int{}
	for _, ids := range s.assign() {
		shared[[2]string(ids)]++
	}
	if len(shared) < 1200 { // of 1225 pairs, about 4 partitions each
		t.Errorf("%d pairs of nodes have a partition in common", len(shared))
	}
	for pair, n := range shared {
		if n > 20 {
			t.Errorf("nodes %q have %d partitions in common", pair, n)
		}
	}
}

// Nodes of one shard count once, with the smallest weight; invalid weights count
// as 1.
func TestMembersOfOneShard(t *testing.T) {
	clean := []Member{{"a", 1, ""}, {"b", 2, "x"}, {"c", 1, "y"}, {"d", 1e6, "y"}, {"e", 0.001, "y"}}
	rough := []Member{{"d", 1e300, "y"}, {"b", 3, "z"}, {"a", 0, ""}, {"b", 2, "x"}, {"c", math.NaN(), "y"}, {"e", 1e-300, "y"},
		{"c", -1, "y"}, {"d", math.Inf(1), "y"}, {"b", 2, "x"}}
	want := Assign(Balanced, clean, 100, 2, "db")
	same(t, sample{clean, 100, 2}, "as given", want, Assign(Balanced, rough, 100, 2, "db"))
}

// FuzzBalanced checks the guarantees for arbitrary inputs.
func FuzzBalanced(f *testing.F) {
	f.Add(uint64(1), uint64(2), 5, 64)
	f.Add(uint64(3), uint64(4), 20, 7)
	f.Add(uint64(5), uint64(6), 1, 1)
	f.Fuzz(func(t *testing.T, seed1, seed2 uint64, nodes, partitions int) {
		if nodes < 1 || nodes > 60 || partitions < 1 || partitions > 400 {
			return
		}
		r := rand.New(rand.NewPCG(seed1, seed2))
		s := randomSample(r, nodes, partitions)
		s.check(t, s.assign())
	})
}
