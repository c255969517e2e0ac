package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/version/pin"
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
	unwanted := map[string]DB{"a": {Pin: &pin.File{Exclude: []string{"1"}}, Versions: dbs(Removing)["a"].Versions}}
	hidden := map[string]DB{"a": {Error: "its versions cannot be listed", Versions: dbs(Removing)["a"].Versions}}
	tests := []struct {
		st          Status
		reason      string
		level, line string
	}{
		{Status{DBs: missing}, "", LevelBad, "Serving 1 database; 1 with partitions that no node holds."},
		{Status{DBs: unwanted, Node: "localhost"}, "", LevelBad, "Serving 1 database; 1 from a version that is excluded, or not the one that is pinned, as no other is ready."},
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
		test.st.health(test.reason == "", test.reason)
		if test.st.Level != test.level || test.st.Health != test.line {
			t.Errorf("%s %q, want %s %q", test.st.Level, test.st.Health, test.level, test.line)
		}
	}
}

// What other nodes have read of a pin is in the status of the cluster, and a version that is served against a pin is an error on
// that node.
func TestPins(t *testing.T) {
	db := func(node string, p *pin.File) map[string]DB {
		return map[string]DB{"a": {Pin: p, Versions: map[string]Version{"1": {Nodes: map[string]OnNode{node: {State: Active, Current: true}}}}}}
	}
	st := Status{Node: "here:1", DBs: db("here:1", nil)}
	decided := pin.File{Version: "2", Reasons: map[string]string{"2": "wrong prices"}}
	st.Merge([]Answer{{Peer: Peer{Addr: "there:1"}, Status: Status{DBs: db("there:1", &decided)}}})
	st.Complete(true, "")
	a := st.DBs["a"]
	if !a.PinOn("there:1", st.Node).Same(pin.File{Version: "2"}) || !a.PinOn("here:1", st.Node).Same(pin.File{}) || a.PinOn("there:1", st.Node).Same(pin.File{Version: "1"}) {
		t.Errorf("pins %+v", a.Pins)
	}
	if n := a.Versions["1"].Nodes; n["here:1"].Error != "" || n["there:1"].Error == "" {
		t.Errorf("nodes %+v", n)
	}
}

// The traffic of a db in the cluster is that of all nodes, also where this node does not know the db.
func TestTrafficOfTheCluster(t *testing.T) {
	fast, slow := Traffic{Seconds: 5, Requests: 10, Misses: 1, Errors: 2, P50: 1, P99: 4}, Traffic{Seconds: 6, Requests: 5, P50: 2, P99: 3}
	st := Status{Node: "here:1", DBs: map[string]DB{"a": {Traffic: fast}}}
	st.Merge([]Answer{
		{Peer: Peer{Addr: "there:1"}, Status: Status{DBs: map[string]DB{"a": {Traffic: slow}, "b": {Traffic: slow}}}},
		{Peer: Peer{Addr: "gone:1", Error: "it does not answer"}},
	})
	if got, want := st.DBs["a"].ClusterTraffic, (Traffic{Seconds: 6, Requests: 15, Misses: 1, Errors: 2, P50: 2, P99: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if st.DBs["a"].Traffic != fast || st.DBs["b"].ClusterTraffic != slow {
		t.Errorf("%+v", st.DBs)
	}
}

// A version that was never active has no time of that.
func TestUnknownTimesAreAbsent(t *testing.T) {
	data, err := json.Marshal(OnNode{Name: "n", State: Building, CreatedAt: time.Unix(1, 0).UTC()})
	if text := string(data); err != nil || strings.Contains(text, "active_at") || strings.Contains(text, "0001-01-01") || !strings.Contains(text, `"created_at":"1970-01-01T00:00:01Z"`) {
		t.Errorf("%s, %v", data, err)
	}
}
