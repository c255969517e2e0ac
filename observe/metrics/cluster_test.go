package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"

	"sequins/observe/status"
)

func TestCluster(t *testing.T) {
	m := New()
	scrape := func() string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	if text := scrape(); strings.Contains(text, "sequins_cluster_") || strings.Contains(text, "sequins_zookeeper_") {
		t.Errorf("a single node shows a cluster:\n%s", text)
	}
	m.Server.SetState(func() State {
		return State{Status: status.Status{
			ZooKeeper:   &status.ZooKeeper{Connected: true, Sessions: 2, Published: 7, Pending: 1, Nodes: 3, Problems: 1},
			Differences: []status.Difference{{Setting: "settle"}, {Setting: status.SettingBuild}},
		}}
	})
	text := scrape()
	for _, want := range []string{
		"sequins_cluster_nodes 3",
		"sequins_cluster_problems 1",
		"sequins_cluster_differences 1",
		"sequins_zookeeper_connected 1",
		"sequins_zookeeper_sessions_total 2",
		`sequins_zookeeper_znodes{state="pending"} 1`,
		`sequins_zookeeper_znodes{state="published"} 7`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
}
