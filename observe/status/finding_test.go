package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Everything that is wrong is found, in the order of importance, and the first is the health.
func TestFindings(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	on := func(n OnNode) Version { return Version{NumPartitions: 1, Nodes: map[string]OnNode{"n": n}} }
	served := on(OnNode{State: Active, Current: true, Partitions: []int{0}})
	lost := on(OnNode{State: Active, Current: true})
	st := Status{Node: "n", SourceError: "no such host", SourceErrorSince: now.Add(-time.Hour), Warnings: []string{"healthz cannot be a db", "_PIN of words cannot be read"},
		ReloadError: "line 1\nline 2", TokensError: "line 3\nline 4", Certificate: Certificate{Expires: now.Add(-time.Hour), Error: "no key"}, ZooKeeper: &ZooKeeper{Error: "refused"}, Problems: []string{"b has replication 3"},
		Peers: map[string]Peer{}, Disk: Disk{Bytes: 100, Free: 1}, RestartKeys: []string{"bind", "source"},
		DBs: map[string]DB{
			"lost": {Versions: map[string]Version{"1": lost}}, "good": {Versions: map[string]Version{"1": served}},
			"failed": {Versions: map[string]Version{"1": served, "2": on(OnNode{State: Error})}},
		}}
	for _, name := range strings.Split("a,b,c,d,e,f,g", ",") {
		st.Peers[name] = Peer{Error: "refused"}
	}
	st.Complete(true, "")
	var got []string
	for _, f := range st.Findings() {
		got = append(got, f.Level+" "+f.Line(now)+" #"+f.Runbook)
	}
	want := []string{
		"bad  #sequinspartitionsmissing",
		"warn  #sequinsversionfailed",
		"bad b has replication 3 #sequinsclustersettings",
		"warn ZooKeeper cannot be reached: refused #sequinszookeeperlost",
		"warn  #sequinsdown",
		"warn The new certificates are not in use: no key #sequinscertificateexpires",
		"bad The certificate of this node has expired. (for 1 h 0 min) #sequinscertificateexpires",
		"warn The tokens file is not good, and the former tokens are in use: line 3; line 4 #sequinsreloadfailed",
		"warn The source cannot be read: no such host (for 1 h 0 min) #sequinssourceunreachable",
		"warn _PIN of words cannot be read #a-pin-that-cannot-be-read",
		"warn The last reload of the configuration has failed: line 1; line 2 #sequinsreloadfailed",
		"note The disk of this node has 1 B of 100 B free. #sequinsdiskfull", "note Keys of the configuration have changed and need a restart: bind, source. #keys-that-need-a-restart", "note healthz cannot be a db #entries-that-are-left-out",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if st.Level != LevelBad || st.Health != "Serving 3 databases; 1 with partitions that no node holds; 1 with a version that could not be loaded." {
		t.Errorf("%s %q", st.Level, st.Health)
	}
}

// What is only noted does not affect the health.
func TestNotes(t *testing.T) {
	st := Status{Node: "n", Warnings: []string{"x"}, Disk: Disk{Bytes: 100, Free: 1}, Differences: []Difference{{Setting: SettingBuild}},
		DBs: map[string]DB{"a": {Versions: map[string]Version{"1": {Nodes: map[string]OnNode{"n": {State: Active, Current: true}}}}}}}
	st.Complete(true, "")
	if len(st.Findings()) != 3 || !st.Healthy || st.Level != LevelGood || st.Health != "Serving 1 database." {
		t.Errorf("%v, %s %q", st.Findings(), st.Level, st.Health)
	}
}

// What other nodes say of themselves is with the status of the cluster, in bounds.
func TestPeersDescribeThemselves(t *testing.T) {
	theirs := Status{Node: "b", Build: "v2", Traffic: Traffic{Seconds: 5, Requests: 3}, Waiting: make([]Wait, 100)}
	theirs.Complete(false, "it waits for x")
	st := Status{Node: "a"}
	st.DBs = map[string]DB{}
	st.Merge([]Answer{{Peer: Peer{Addr: "b", ShardID: "2"}, Status: theirs}, {Peer: Peer{Addr: "c", Error: "refused"}}})
	b := st.Peers["b"]
	if b.Level != LevelBad || b.Health != "Not ready: it waits for x." || b.Build != "v2" || b.ShardID != "2" || b.Traffic.Requests != 3 || len(b.Waiting) != maxPeerWaits {
		t.Errorf("%+v", b)
	}
	if c := st.Peers["c"]; c.Level != "" || c.Health != "" {
		t.Errorf("%+v", c)
	}
	if m := st.Members(); len(m) != 3 || m[0].Addr != "a" || m[2].Addr != "c" {
		t.Errorf("%+v", m)
	}
}

// Records and holders of a version over all nodes.
func TestRecordsAndHolders(t *testing.T) {
	v := Version{NumPartitions: 4, Nodes: map[string]OnNode{"a": {Partitions: []int{0, 1}, Records: 10}, "b": {Partitions: []int{1, 9, -1}, Records: 20}, "c": {State: Error, Partitions: []int{2}}}}
	if n, exact := v.Records(); n != 20 || exact { // 30 of six
		t.Errorf("%d, %v", n, exact)
	}
	if diff := cmp.Diff([]int{1, 2, 0, 0}, v.Holders()); diff != "" {
		t.Error(diff)
	}
	v.Nodes["a"] = OnNode{Partitions: []int{0, 1, 2, 3}, Records: 17}
	if n, exact := v.Records(); n != 17 || !exact {
		t.Errorf("%d, %v", n, exact)
	}
	huge := Version{NumPartitions: 1 << 40}
	if n := len(huge.Holders()); n != 1<<16 {
		t.Errorf("%d partitions", n)
	}
}

// A database of which nearly all reads miss is not good, unless there are few of them.
func TestMisses(t *testing.T) {
	db := DB{Versions: map[string]Version{"1": {Nodes: map[string]OnNode{"n": {Current: true}}}}}
	for _, test := range []struct {
		own, cluster Traffic
		level        string
	}{
		{Traffic{Seconds: 5, Requests: 100, Misses: 90}, Traffic{}, LevelGood},
		{Traffic{Seconds: 5, Requests: 100, Misses: 97}, Traffic{}, LevelWarn},
		{Traffic{Seconds: 5, Requests: 10, Misses: 10}, Traffic{}, LevelGood},
		{Traffic{Seconds: 5, Requests: 100, Misses: 100}, Traffic{Seconds: 5, Requests: 1000, Misses: 100}, LevelGood},
	} {
		db.Traffic, db.ClusterTraffic = test.own, test.cluster
		if level, _, _ := db.Health("n"); level != test.level {
			t.Errorf("%+v: %s", test, level)
		}
	}
}

func TestBrief(t *testing.T) {
	v := Version{Path: "/data/words/2"}
	for text, want := range map[string]string{
		"loading version 2 of words: /data/words/2/part-0: at offset 5: damaged": "part-0: at offset 5: damaged",
		"version 2 of words is not complete":                                     "version 2 of words is not complete",
		"loading version 1 of words: damaged":                                    "loading version 1 of words: damaged",
		"":                                                                       "",
	} {
		if got := v.Brief(text, "2"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
