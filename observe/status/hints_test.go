package status

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/shard"
)

// divided is a version of which one node holds all partitions, of sizes in MiB.
func divided(replication int, sizes ...int64) Version {
	n := OnNode{State: Active, Current: true}
	for p, size := range sizes {
		n.Partitions, n.PartitionBytes = append(n.Partitions, p), append(n.PartitionBytes, size<<20)
	}
	return Version{NumPartitions: len(sizes), TargetReplication: replication, Nodes: map[string]OnNode{"n": n}}
}

// A hint needs a size that matters: of the database if nodes are idle, of the partition if the keys are skewed.
func TestHints(t *testing.T) {
	for _, test := range []struct {
		v      Version
		shards int
		want   []string
	}{
		{divided(2, 64), 2, nil},
		{divided(2, 63), 3, nil},
		{divided(2, 64), 3, []string{"words has 1 partition with replication 2, so 1 of 3 nodes hold nothing of it: let the job write more partitions, or use fewer nodes."}},
		{divided(0, 40, 40), 5, []string{"words has 2 partitions with replication 1, so 3 of 5 nodes hold nothing of it: let the job write more partitions, or use fewer nodes."}},
		{divided(1, 1000, 1, 1, 1), 4, nil}, // never four times the mean of four
		{divided(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 63), 4, nil},
		{divided(1, 16, 16, 16, 16, 16, 16, 16, 16, 64), 4, nil},
		{divided(1, 10, 10, 10, 10, 110, 10, 10, 10, 10, 10), 4, []string{
			"Partition 4 of words has 110.0 MiB, more than 4 times the mean of 20.0 MiB: the keys are skewed, and its nodes have more to store and to answer than others."}},
		{divided(1, 10, 10, 10, 10, 110, 10, 10, 10, 10, 0), 4, nil}, // the mean is unknown
		{divided(1), 4, nil},
	} {
		if diff := cmp.Diff(test.want, test.v.Hints("words", test.shards)); diff != "" {
			t.Errorf("%v among %d (-want +got):\n%s", test.v.Sizes(), test.shards, diff)
		}
	}
}

// Hints of what is served are in the status of the cluster, and are no fault. Older versions have none, and a node that has not asked the others knows none.
func TestHintsAreNotes(t *testing.T) {
	st := Status{Node: "n", ShardID: "1", Weight: 1, DBs: map[string]DB{"words": {Versions: map[string]Version{"1": divided(1, 64), "2": divided(1, 64)}}}}
	before := st.DBs["words"].Versions["1"].Nodes["n"]
	before.Current = false
	st.DBs["words"].Versions["1"].Nodes["n"] = before
	st.Complete(true, "")
	if len(st.Findings()) > 0 {
		t.Errorf("alone: %v", st.Findings())
	}
	st.Merge([]Answer{{Peer: Peer{Addr: "m", ShardID: "2", Weight: 1}}, {Peer: Peer{Addr: "o", ShardID: "3", Weight: 1, Error: "refused"}}})
	st.Complete(true, "")
	if hints := st.DBs["words"].Hints; len(hints) != 1 || !strings.Contains(hints[0], "2 of 3 nodes") {
		t.Errorf("hints %q", hints)
	}
	notes := slices.DeleteFunc(st.Findings(), func(f Finding) bool { return f.Runbook != "partitions-that-are-divided-unevenly" })
	if len(notes) != 1 || notes[0].Level != LevelNote {
		t.Errorf("findings %v", st.Findings())
	}
	if level, _, _ := st.DBs["words"].Health("n"); level != LevelGood {
		t.Errorf("the database is %s", level)
	}
}

// Routers and nodes without a shard id have no part; nodes with the same shard id are one member.
func TestShards(t *testing.T) {
	st := Status{Node: "r", ShardID: "r", Role: "router", DBs: map[string]DB{}}
	if len(st.Shards()) > 0 {
		t.Errorf("of a router alone: %v", st.Shards())
	}
	st.Merge([]Answer{
		{Peer: Peer{Addr: "a", ShardID: "1", Zone: "z", Weight: 2}, Status: Status{Zone: "lie", Weight: 9}}, {Peer: Peer{Addr: "b", ShardID: "1", Zone: "y", Weight: 3}},
		{Peer: Peer{Addr: "c", ShardID: "2", Weight: 1, Error: "refused"}}, {Peer: Peer{Addr: "d", Weight: 1}},
	})
	want := map[string]shard.Member{"1": {ShardID: "1", Zone: "y", Weight: 2}, "2": {ShardID: "2", Weight: 1}}
	if diff := cmp.Diff(want, st.Shards()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each partition has the size that a node which holds it reports, whatever else nodes report.
func TestSizes(t *testing.T) {
	on := func(partitions []int, bytes ...int64) map[string]Version {
		return map[string]Version{"1": {NumPartitions: 4, Nodes: map[string]OnNode{"b": {Partitions: partitions, PartitionBytes: bytes}}}}
	}
	for _, test := range []struct {
		theirs map[string]Version
		want   []int64
	}{
		{on([]int{1, 2}, 20, 30), []int64{10, 20, 30, 0}},
		{on([]int{1, 2}, 20), []int64{10, 20, 0, 0}},
		{on([]int{1}, 20, 30), []int64{10, 20, 0, 0}},
		{on([]int{9, 2}, 20, 30), []int64{10, 0, 0, 0}}, // impossible: all of its sizes are in doubt
		{on([]int{1, 2}, -1, 1<<62), []int64{10, 0, maxBlock, 0}},
	} {
		st := Status{Node: "a", DBs: map[string]DB{"db": {Versions: map[string]Version{"1": {NumPartitions: 4, Nodes: map[string]OnNode{"a": {Partitions: []int{0}, PartitionBytes: []int64{10}}}}}}}}
		st.Merge([]Answer{{Peer: Peer{Addr: "b"}, Status: Status{DBs: map[string]DB{"db": {Versions: test.theirs}}}}})
		v := st.DBs["db"].Versions["1"]
		if diff := cmp.Diff(test.want, v.Sizes()); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", v.Nodes["b"], diff)
		}
	}
}
