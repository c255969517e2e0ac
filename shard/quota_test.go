package shard

import (
	"math/rand/v2"
	"testing"
)

// When a shard is added, no other quota rises: only its own quota moves. One may
// rise if that is needed to keep quotas within one of the shares.
func TestQuotasFall(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	forced := 0
	const samples = 3000
	for range samples {
		s := randomSample(r, 300, 3000)
		if len(s.members) < s.replicas {
			continue
		}
		before := s.quotas()
		after := s.with(randomMember(r, "another", 3, r.IntN(5))).quotas()
		risen := 0
		for id, quota := range before {
			risen += max(0, after[id]-quota)
		}
		if risen > 0 {
			forced++
		}
		if risen > 1 {
			t.Errorf("%v: quotas of others rise by %d when one joins", s, risen)
		}
	}
	if forced > samples/100 {
		t.Errorf("quotas of others rose in %d of %d samples", forced, samples)
	}
	t.Logf("quotas of others rose in %d of %d samples", forced, samples)
}

func (s sample) quotas() map[string]int {
	shards := distinctShards(s.members)
	quotas := map[string]int{}
	for i, spot := range newDivision(shards, s.partitions, min(s.replicas, len(s.members)), hashString(0, "db")).spots {
		quotas[shards[i].ShardID] = spot.room
	}
	return quotas
}
