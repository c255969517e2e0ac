package server

import (
	"strings"
	"testing"

	"sequins/internal/wire"
	"sequins/test/contents"
	"sequins/test/versions"
	"sequins/version"
)

// thirds has peers for two of three partitions: one peer for the one, two for the other.
type thirds struct{ version.Solo }

func (thirds) Peers(p int) []string { return [][]string{{"b:2", "c:3"}, nil, {"c:3"}}[p] }

// The answer describes the current version alone; a client can use each address.
func TestPartitions(t *testing.T) {
	set, empty, moved := version.NewSet("db"), version.NewSet("empty"), version.NewSet("moved")
	versions.Activate(t, set, versionOf(t, "db", "v1", 2, map[string]string{"k": "value"}))
	versions.Activate(t, empty, versionOf(t, "empty", "v2", 0, nil))
	v := versionWith(t, version.Info{DB: "moved", Content: contents.Of("v3"), Partitions: 3, Following: thirds{}}, map[string]string{"k": "value"})
	v.Drop(2)
	v.SetDamaged(1)
	versions.Activate(t, moved, v)
	c := &catalog{sets: map[string]*version.Set{"db": set, "empty": empty, "moved": moved, "loading": version.NewSet("loading")}}
	alone, member := start(t, c, testOptions{}), start(t, c, testOptions{Name: "a:1"})
	tests := []struct {
		s       *running
		target  string
		status  int
		version string
		body    string
	}{
		{alone, "/db?partitions", 200, "v1", `{"db":"db","version":"v1","partitioner":"string","partitions":2,"scheme":"http","nodes":["self"],"replicas":[[0],[0]]}` + "\n"},
		{member, "/db/?x&partitions=1", 200, "v1", `{"db":"db","version":"v1","partitioner":"string","partitions":2,"scheme":"http","nodes":["a:1"],"replicas":[[0],[0]]}` + "\n"},
		{member, "/moved?partitions", 200, "v3", `{"db":"moved","version":"v3","partitioner":"string","partitions":3,"scheme":"http","nodes":["a:1","b:2","c:3"],"replicas":[[0,1,2],[],[2]]}` + "\n"},
		{alone, "/empty?partitions", 200, "v2", `{"db":"empty","version":"v2","partitioner":"string","partitions":0,"scheme":"http","nodes":["self"],"replicas":[]}` + "\n"},
		{alone, "/loading?partitions", 503, "", "no version of this db can be read on this node yet\n"},
		{alone, "/perhaps?partitions", 503, "", "no version of this db can be read on this node yet\n"},
		{alone, "/none?partitions", 404, "", "no such db\n"},
	}
	for _, test := range tests {
		a := test.s.get(t, test.target)
		if a.status != test.status || a.body != test.body || a.header.Get(wire.Version) != test.version || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v %s", test.target, a.status, a.header, a.body)
		}
		if retry := a.header.Get("Retry-After"); (retry != "") != (test.status == 503) {
			t.Errorf("%s: %d, Retry-After %q", test.target, test.status, retry)
		}
	}
	for header, want := range map[string]int{wire.AtLeast + ": v1": 200, wire.AtLeast + ": v2": 503, wire.Version + ": v1": 200, wire.Version + ": v2": 412} {
		if a := alone.get(t, "/db?partitions", header); a.status != want {
			t.Errorf("%s: %d %s", header, a.status, a.body)
		}
	}
	if a := alone.get(t, "/db?partition"); strings.HasPrefix(a.body, `{"db":"db"`) {
		t.Errorf("the status page is %s", a.body)
	}
}

// A node with TLS names https.
func TestPartitionsWithTLS(t *testing.T) {
	s, client := startTLS(t, catalogOf(t, map[string]string{"k": "value"}), testOptions{})
	const want = `{"db":"db","version":"v1","partitioner":"string","partitions":2,"scheme":"https","nodes":["self"],"replicas":[[0],[0]]}` + "\n"
	if _, body := ask(t, client, "https://"+s.addr+"/db?partitions"); body != want {
		t.Error(body)
	}
}
