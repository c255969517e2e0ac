package shard

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRoundRobinVectors compares with results of Stripe's sequins.
func TestRoundRobinVectors(t *testing.T) {
	b, err := os.ReadFile("testdata/round_robin.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		ShardIDs    []string `json:"shard_ids"` // by node
		Partitions  int
		Replication int
		Selected    map[string][]int // by shard id
	}
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 100 {
		t.Fatalf("%d vectors in the file", len(vectors))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, v := range vectors {
		var members []Member
		for _, id := range v.ShardIDs {
			members = append(members, Member{ShardID: id, Weight: random.Float64(), Zone: id[:1]})
		}
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		got := selected(Assign(RoundRobin, members, v.Partitions, v.Replication, "db"), v.ShardIDs)
		if diff := cmp.Diff(v.Selected, got); diff != "" {
			t.Errorf("%d partitions, replication %d, shards %q (-old +new):\n%s", v.Partitions, v.Replication, v.ShardIDs, diff)
		}
	}
}

// selected returns the partitions of each shard.
func selected(assigned [][]string, shardIDs []string) map[string][]int {
	s := map[string][]int{}
	for _, id := range shardIDs {
		s[id] = []int{}
	}
	for p, ids := range assigned {
		if !slices.IsSorted(ids) {
			return nil
		}
		for _, id := range ids {
			s[id] = append(s[id], p)
		}
	}
	return s
}

func TestNothingToAssign(t *testing.T) {
	one := []Member{{ShardID: "a"}}
	for _, a := range []Assignment{RoundRobin, Balanced} {
		for _, members := range [][]Member{nil, one} {
			for _, partitions := range []int{-1, 0, 2} {
				for _, replication := range []int{-1, 0, 1} {
					got := Assign(a, members, partitions, replication, "db")
					want := make([][]string, max(partitions, 0))
					for p := range want {
						if len(members) > 0 && replication > 0 {
							want[p] = []string{"a"}
						}
					}
					if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
						t.Errorf("%s among %d, %d partitions, replication %d (-want +got):\n%s",
							a, len(members), partitions, replication, diff)
					}
				}
			}
		}
	}
}
