package server

import (
	"strings"
	"testing"

	"sequins/reads"
	"sequins/test/contents"
	"sequins/test/versions"
	"sequins/version"
)

// A single node that has lost a partition answers as for an unreadable block; one in a cluster answers that no node
// has it.
func TestLostPartition(t *testing.T) {
	for name, test := range map[string]struct {
		proxy reads.Proxy
		code  int
	}{"alone": {nil, 500}, "in a cluster": {proxyFunc(nil), 502}} {
		set := version.NewSet("db")
		versions.Activate(t, set, version.New(version.Info{DB: "db", Content: contents.Of("v1"), Partitions: 2, LastModified: modified, Following: version.Solo{}}))
		s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Proxy: test.proxy})
		for _, header := range []string{"X: y", "If-Match: *"} {
			if got := s.get(t, "/db/k", header); got.status != test.code || got.header.Get("X-Sequins-Version") != "v1" {
				t.Errorf("%s, %s: %+v", name, header, got)
			}
		}
		if got := s.get(t, "/db/k?proxy=v1"); got.status != 501 {
			t.Errorf("%s, to another node: %+v", name, got)
		}
		if got := s.get(t, "/db/k?explain"); strings.Contains(got.body, `"status":500`) != (test.code == 500) {
			t.Errorf("%s, explained: %+v", name, got)
		}
	}
}
