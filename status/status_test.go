package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCount(t *testing.T) {
	tests := []struct {
		partitions, target int
		nodes              map[string]OnNode
		want               Version
	}{
		{0, 1, nil, Version{ReplicationHistogram: map[int]int{}}},
		{2, 2, map[string]OnNode{"a": {Partitions: []int{0, 1}}}, // DESIGN's example
			Version{ReplicationHistogram: map[int]int{1: 2}, AverageReplication: 1, UnderreplicatedPartitions: 2}},
		{3, 1, map[string]OnNode{"a": {Partitions: []int{0, 1}}, "b": {Partitions: []int{1}}, "c": {Partitions: []int{2}, State: Error}},
			Version{ReplicationHistogram: map[int]int{0: 1, 1: 1, 2: 1}, AverageReplication: 1, MissingPartitions: 1, OverreplicatedPartitions: 1}},
		{4, 2, map[string]OnNode{"a": {Partitions: []int{0, 9}}},
			Version{ReplicationHistogram: map[int]int{0: 3, 1: 1}, AverageReplication: 0.25, MissingPartitions: 3, UnderreplicatedPartitions: 1}},
	}
	for _, test := range tests {
		got := Version{NumPartitions: test.partitions, TargetReplication: test.target, Nodes: test.nodes}
		got.count()
		test.want.NumPartitions, test.want.TargetReplication, test.want.Nodes = test.partitions, test.target, test.nodes
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%d partitions (-want +got):\n%s", test.partitions, diff)
		}
	}
}

// The health of a node, and the reason that comes first.
func TestHealth(t *testing.T) {
	dbs := func(states ...State) map[string]DB {
		m := map[string]DB{}
		for i, s := range states {
			m[string(rune('a'+i))] = DB{Versions: map[string]Version{
				"1": {Nodes: map[string]OnNode{"localhost": {State: Active, Current: true}}},
				"2": {Nodes: map[string]OnNode{"localhost": {State: s}}},
			}}
		}
		return m
	}
	missing, thin := dbs(Removing), dbs(Error, Removing)
	missing["a"].Versions["1"] = Version{MissingPartitions: 1, Nodes: missing["a"].Versions["1"].Nodes}
	thin["b"].Versions["1"] = Version{UnderreplicatedPartitions: 1, Nodes: thin["b"].Versions["1"].Nodes}
	delete(thin["a"].Versions, "2")
	hidden := map[string]DB{"a": {Error: "its versions cannot be listed", Versions: dbs(Removing)["a"].Versions}}
	tests := []struct {
		st          Status
		reason      string
		level, line string
	}{
		{Status{DBs: missing}, "", LevelBad, "Serving 1 database; 1 with partitions that no node holds."},
		{Status{DBs: thin}, "", LevelWarn, "Serving 2 databases; 1 with partitions that too few nodes hold."},
		{Status{DBs: dbs(Removing)}, "", LevelGood, "Serving 1 database."},
		{Status{DBs: dbs(Removing, Building)}, "", LevelGood, "Serving 2 databases."},
		{Status{DBs: dbs(Error, Building)}, "", LevelWarn, "Serving 2 databases; 1 with a version that could not be loaded."},
		{Status{DBs: dbs(Active), SourceError: "no such host"}, "", LevelWarn, "Serving 1 database, but the source cannot be read."},
		{Status{DBs: hidden}, "", LevelWarn, "Serving 1 database; 1 that cannot be listed in the source."},
		{Status{DBs: map[string]DB{"a": {}, "b": dbs(Active)["a"]}}, "", LevelWarn, "Serving 1 of 2 databases."},
		{Status{}, "", LevelWarn, "Ready, but there is no database in the source."},
		{Status{DBs: dbs(Active)}, "db x has no version", LevelBad, "Not ready: db x has no version."},
		{Status{DBs: dbs(Active), Draining: true}, "", LevelBad, "This node is shutting down."},
	}
	for _, test := range tests {
		test.st.Node = "localhost"
		level, line := test.st.health(test.reason == "", test.reason)
		if level != test.level || line != test.line {
			t.Errorf("%s %q, want %s %q", level, line, test.level, test.line)
		}
	}
}
