package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/observe/status"
	"sequins/shard"
	"sequins/test/expect"
)

// clusterNode answers with the status of a node of a cluster of three: of words, each node holds one partition, of 10, 20 and 30 MiB, and has
// that as its weight. The sizes of birds are unknown.
func clusterNode(t *testing.T, edit func(*status.Status)) (url string) {
	t.Helper()
	st := status.Status{Node: "n1:9599", ShardID: "1", Role: "node", Weight: 10, Assignment: shard.RoundRobin, Peers: map[string]status.Peer{
		"n2:9599": {ShardID: "2", Zone: "b\x1b[1m", Weight: 20}, "n3:9599": {ShardID: "3", Weight: 30},
	}}
	words := status.Version{NumPartitions: 3, TargetReplication: 1, Nodes: map[string]status.OnNode{}}
	for p := range 3 {
		words.Nodes[fmt.Sprintf("n%d:9599", p+1)] = status.OnNode{State: status.Active, Current: true, Partitions: []int{p}, PartitionBytes: []int64{int64(p+1) * 10 << 20}}
	}
	birds := status.Version{NumPartitions: 1, TargetReplication: 2, Nodes: map[string]status.OnNode{"n1:9599": {State: status.Active, Current: true}}}
	st.DBs = map[string]status.DB{"words": {Versions: map[string]status.Version{"7": words}}, "birds": {Versions: map[string]status.Version{"1": birds}}, "new": {}}
	if edit != nil {
		edit(&st)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(&st); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestPlanOfNodesAsTheyAre(t *testing.T) {
	url := clusterNode(t, nil)
	r := sequins(t, "plan", "--server", url)
	r.wants(t, exitOK)
	want := url + `, assignment round_robin
The size of 1 partition of birds is unknown and counts as 0: no node that answers holds them.
DATABASE  VERSION  REPLICATION  PARTITIONS  SIZE      MOVES  SIZE MOVED  AT LEAST
birds     1        2            1           -         -      -           -
new       -        -            -           -         -      -           -
words     7        1            3           60.0 MiB  -      -           -
all                             4           60.0 MiB  -      -           -

SHARD  NODE     ZONE      WEIGHT  SHARE  PARTITIONS  SIZE      SIZE IN
1      n1:9599  -         10      33.3%  2           10.0 MiB  -
2      n2:9599  b\x1b[1m  20      33.3%  2           20.0 MiB  -
3      n3:9599  -         30      33.3%  1           30.0 MiB  -
`
	if diff := cmp.Diff(want, r.stdout); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The shard ids in order, as round_robin has them: 0, 2, 3, 4, so words is on 0, 2 and 3. Only its first partition has to move, and that of 30 MiB has not.
func TestPlanOfAChange(t *testing.T) {
	url := clusterNode(t, nil)
	args := []string{"plan", "words", "--server", url, "--remove", "1", "--add", "0=5@a", "--add", "4", "--weight", "3=13"}
	r := sequins(t, args...)
	r.wants(t, exitOK)
	want := url + `, assignment round_robin
DATABASE  VERSION  REPLICATION  PARTITIONS  SIZE      MOVES  SIZE MOVED  AT LEAST
words     7        1            3           60.0 MiB  1      10.0 MiB    10.0 MiB
all                             3           60.0 MiB  1      10.0 MiB    10.0 MiB

SHARD  NODE     ZONE      WEIGHT  SHARE  PARTITIONS  SIZE          SIZE IN
0      -        a         5       25.0%  - → 1       - → 10.0 MiB  10.0 MiB
1      n1:9599  -         -       -      1 → -       10.0 MiB → -  -
2      n2:9599  b\x1b[1m  20      25.0%  1           20.0 MiB      -
3      n3:9599  -         13      25.0%  1           30.0 MiB      -
4      -        -         1       25.0%  -           -             -
`
	if diff := cmp.Diff(want, r.stdout); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var got plan
	r = sequins(t, append(args, "--json")...)
	isJSON(t, r.stdout)
	expect.NoError(t, json.Unmarshal([]byte(r.stdout), &got))
	if diff := cmp.Diff(1, got.Databases[0].Moved); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The hints are those of the nodes after the change.
func TestPlanHints(t *testing.T) {
	url := clusterNode(t, func(st *status.Status) {
		st.DBs["words"].Versions["7"].Nodes["n1:9599"].PartitionBytes[0] = 64 << 20
		st.Problems = []string{"n2:9599 has replication 3"}
	})
	if r := sequins(t, "plan", "words", "--server", url); strings.Contains(r.stdout, "hold nothing") || !strings.Contains(r.stdout, "\nn2:9599 has replication 3\n") {
		t.Errorf("%s", r.stdout)
	}
	if r := sequins(t, "plan", "words", "--server", url, "--add", "4"); !strings.Contains(r.stdout, "words has 3 partitions with replication 1, so 1 of 4 nodes hold nothing of it: ") {
		t.Errorf("%s", r.stdout)
	}
}

func TestPlanRefuses(t *testing.T) {
	url := clusterNode(t, nil)
	for args, want := range map[string]string{
		"--remove 12":                      `--remove 12: no node has this shard id; there are 1, 2, 3`,
		"--remove 1 --remove 1":            `--remove 1: no node has this shard id; there are 2, 3`,
		"--remove 1 --remove 2 --remove 3": "no node would be left that holds partitions: remove fewer, or add one",
		"--weight 4=2":                     "--weight 4=2: no node has this shard id; there are 1, 2, 3",
		"--weight 1":                       "--weight 1: a weight is a number from 0.01 to 1000",
		"--weight 1=0":                     "--weight 1=0: a weight is a number from 0.01 to 1000",
		"--weight 1=NaN":                   "--weight 1=NaN: a weight is a number from 0.01 to 1000",
		"--add 4=heavy@b":                  "--add 4=heavy@b: a weight is a number from 0.01 to 1000",
		"--add =2":                         "--add =2: a shard id is needed",
		"--add 3":                          "--add 3: a node has this shard id, and another one would hold the same: --weight gives it another weight",
	} {
		sequins(t, append([]string{"plan", "--server", url}, strings.Fields(args)...)...).wants(t, exitUsage, "sequins: "+want)
	}
	sequins(t, "plan", "word", "--server", url).wants(t, exitAbsent, "sequins: "+url+` has no database "word"; did you mean words?`)
	alone := clusterNode(t, func(st *status.Status) { st.Peers, st.Role, st.Weight, st.Assignment = nil, "", 0, "" })
	sequins(t, "plan", "--server", alone).wants(t, exitFailure, "sequins: "+alone+" is in no cluster of nodes that hold partitions: ")
	sequins(t, "plan", "--server", "127.0.0.1:1").wants(t, exitUnreachable, "sequins: http://127.0.0.1:1 refuses the connection: ")
}

// replica is a partition of a database on a shard.
type replica struct {
	db        string
	partition int
	shard     string
}

// replicas returns what the shards hold by an assignment, with the sizes.
func replicas(st *status.Status, members map[string]shard.Member) map[replica]int64 {
	all := map[replica]int64{}
	for db, d := range st.DBs {
		v := d.Versions["1"]
		var list []shard.Member
		for _, m := range members {
			list = append(list, m)
		}
		for p, ids := range shard.Assign(st.Assignment, list, v.NumPartitions, v.TargetReplication, db) {
			for _, id := range ids {
				all[replica{db, p, id}] = v.Nodes["n"].PartitionBytes[p]
			}
		}
	}
	return all
}

// Whatever the nodes and the change are, the plan is the difference between the replicas before and after.
func TestPlanIsTheDifference(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		members := func() map[string]shard.Member {
			all := map[string]shard.Member{}
			for range 1 + r.IntN(6) {
				id := fmt.Sprint(r.IntN(9))
				all[id] = shard.Member{ShardID: id, Weight: 1 + r.Float64(), Zone: []string{"", "a", "b"}[r.IntN(3)]}
			}
			return all
		}
		st := &status.Status{Node: "n", DBs: map[string]status.DB{}, Assignment: []shard.Assignment{shard.RoundRobin, shard.Balanced}[r.IntN(2)]}
		for i := range 1 + r.IntN(3) {
			v := status.Version{NumPartitions: 1 + r.IntN(30), TargetReplication: 1 + r.IntN(3), Nodes: map[string]status.OnNode{}}
			n := status.OnNode{Current: true}
			for p := range v.NumPartitions {
				n.Partitions, n.PartitionBytes = append(n.Partitions, p), append(n.PartitionBytes, 1+r.Int64N(1<<30))
			}
			v.Nodes["n"] = n
			st.DBs[fmt.Sprint(i)] = status.DB{Versions: map[string]status.Version{"1": v}}
		}
		was, will := members(), members()
		p := newPlan(st, was, will)
		before, after := replicas(st, was), replicas(st, will)
		shards, moved := map[string]*shardPlan{}, 0
		for _, s := range p.Shards {
			shards[s.ShardID] = &shardPlan{ShardID: s.ShardID, Zone: s.Zone, Weight: s.Weight, Share: s.Share}
		}
		for at, bytes := range before {
			shards[at.shard].Before.add(bytes)
		}
		var total int64
		for at, bytes := range after {
			shards[at.shard].After.add(bytes)
			if _, there := before[at]; !there {
				shards[at.shard].BytesIn += bytes
				total += bytes
				moved++
			}
		}
		if p.Total.Moved != moved || p.Total.MovedBytes != total || p.Total.LeastBytes > total {
			t.Errorf("seed %d: %d moves of %d; %d bytes of %d, at least %d", seed, p.Total.Moved, moved, p.Total.MovedBytes, total, p.Total.LeastBytes)
		}
		for _, s := range p.Shards {
			if diff := cmp.Diff(shards[s.ShardID], s); diff != "" {
				t.Errorf("seed %d (-want +got):\n%s", seed, diff)
			}
		}
		if !slices.IsSortedFunc(p.Shards, func(a, b *shardPlan) int { return strings.Compare(a.ShardID, b.ShardID) }) {
			t.Errorf("seed %d: the shards are not in order", seed)
		}
	}
}
