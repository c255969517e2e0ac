package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/zk"
)

func TestParseReplicas(t *testing.T) {
	names := []string{"00000@a:1", "00002@a:1", "00000@me:1", "00002@b:1", "2@c:1", "stray", "99999999@d:1"}
	entries := make([]zk.Entry, len(names))
	for i, n := range names {
		entries[i].Name = n
	}
	r := parseReplicas(entries, "me:1", "")
	if diff := cmp.Diff([][]string{{"a:1"}, nil, {"a:1", "b:1"}}, r.byPartition); diff != "" {
		t.Error(diff)
	}
	if r.malformed == "" {
		t.Error("no malformed znode reported")
	}
}

// A node that is not advertised any more remains a peer for a while, as it may
// only have lost ZooKeeper. It does not count as a replica.
func TestVanished(t *testing.T) {
	now := time.Now()
	v := new(view)
	check := func(what string, replicas, peers [][]string) {
		t.Helper()
		if diff := cmp.Diff(replicas, v.replicas); diff != "" {
			t.Errorf("%s: replicas\n%s", what, diff)
		}
		for p, want := range peers {
			if got := slices.Sorted(slices.Values(at(v.peers, p))); !slices.Equal(got, want) {
				t.Errorf("%s: of partition %d can be asked %q, want %q", what, p, got, want)
			}
		}
	}
	both := [][]string{{"a", "b"}, {"b"}}
	v = v.next(holdings{byPartition: both}, now)
	check("at first", both, [][]string{{"a", "b"}, {"b"}, nil})
	v = v.next(holdings{byPartition: [][]string{{"a"}}}, now.Add(time.Second))
	check("b is gone", [][]string{{"a"}}, [][]string{{"a", "b"}, {"b"}})
	v = v.next(holdings{byPartition: nil}, now.Add(2*time.Second))
	check("all are gone", nil, [][]string{{"a", "b"}, {"b"}})
	v = v.next(holdings{byPartition: [][]string{{"c"}}}, now.Add(3*time.Second))
	check("another has come", [][]string{{"c"}}, [][]string{{"a", "b", "c"}, {"b"}})
	v = v.next(holdings{byPartition: [][]string{{"b", "c"}}}, now.Add(4*time.Second))
	check("b is back", [][]string{{"b", "c"}}, [][]string{{"a", "b", "c"}, {"b"}})
	v = v.next(holdings{byPartition: [][]string{{"b", "c"}}}, now.Add(missedFor+time.Hour))
	check("much later", [][]string{{"b", "c"}}, [][]string{{"b", "c"}, nil})
}

// The number of vanished peers is bounded.
func TestVanishedAreFew(t *testing.T) {
	v := new(view)
	for i := range 1000 {
		v = v.next(holdings{byPartition: [][]string{{"n" + string(rune('a'+i%26)) + string(rune('a'+i/26))}}}, time.Now())
	}
	if n := len(at(v.peers, 0)); n > maxMissed+1 {
		t.Errorf("%d can be asked", n)
	}
}
