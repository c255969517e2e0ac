//go:build integration

package alerts

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	promql "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

func readDashboard(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(process.Root(), "packaging", "contrib", "grafana", "sequins.json"))
	expect.NoError(t, err)
	return text
}

// The dashboard is what Grafana's own description of dashboards and panels allows, without unknown or missing fields.
func TestDashboardSchema(t *testing.T) {
	// cog/plugins registers all kinds of panels. They take half a minute to compile.
	known := cog.NewRuntime()
	known.RegisterPanelcfgVariant(stat.VariantConfig())
	known.RegisterPanelcfgVariant(table.VariantConfig())
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterDataqueryVariant(promql.VariantConfig())
	var d dashboard.Dashboard                                                            //nolint:staticcheck // the second schema is for resources of Kubernetes, not for files that people import
	if err := d.UnmarshalJSONStrict(readDashboard(t)); err != nil && err.Error() != "" { // it may be an empty list
		t.Error(err)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	if len(d.Panels) < 40 {
		t.Errorf("%d panels", len(d.Panels))
	}
	var kinds struct {
		Panels []struct {
			Type       string
			Datasource struct{ Type string }
		}
	}
	expect.NoError(t, json.Unmarshal(readDashboard(t), &kinds))
	for _, p := range kinds.Panels {
		if _, ok := known.ConfigForPanelcfgVariant(p.Type); p.Type != "row" && (!ok || p.Datasource.Type != "prometheus") {
			t.Errorf("this test has no schema for a panel of type %s with queries of %s", p.Type, p.Datasource.Type)
		}
	}
}

// A query is one of the dashboard, of a panel or of the annotations.
type query struct{ of, expr string }

// queries returns all queries, with the variables as Grafana fills them in.
func queries(t *testing.T) (all []query) {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
	}
	expect.NoError(t, json.Unmarshal(readDashboard(t), &d))
	fill := strings.NewReplacer("$__rate_interval", "20s", "$instance", ".*", "$db", ".*")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, query{p.Title, fill.Replace(target.Expr)})
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, query{a.Name, fill.Replace(a.Expr)})
	}
	return all
}

// No panel is empty that shows a busy cluster: one that answers, asks other nodes, copies blocks, and has loaded a new version.
func TestDashboardOfBusyCluster(t *testing.T) {
	runtime.LockOSThread() // processes that this thread starts end with it
	p := startPrometheus(t)
	s := newScene(t, "busy", p, harness.Start(t))
	_, nodes := s.cluster(3, "replication = 2\n")
	for _, n := range nodes {
		s.ask(n)
	}
	s.wait("all nodes have been scraped", func() bool { return !p.scraped(t, s.targets).IsZero() })
	for version := 2; version < 5; version++ { // Prometheus sees an increase only of series that it has scraped before
		s.write(fmt.Sprint(version))
		for _, n := range nodes {
			n.WaitCurrent(s, s.name, fmt.Sprint(version))
		}
	}
	left := queries(t)
	if len(left) < 40 {
		t.Fatalf("%d queries", len(left))
	}
	var empty []query
	t.Cleanup(func() {
		for _, q := range empty {
			t.Logf("%s has no value: %s", q.of, q.expr)
		}
	})
	s.wait("no query is empty", func() bool {
		empty = nil
		for _, q := range left {
			if !p.has(t, q.expr) {
				empty = append(empty, q)
			}
		}
		left = empty
		return len(empty) == 0
	})
}

// has reports whether a query has a value that is a number. A query that Prometheus refuses fails the test.
func (p *prometheus) has(t *testing.T, expr string) bool {
	t.Helper()
	var data struct{ Result []struct{ Value [2]any } }
	p.get(t, "query?query="+url.QueryEscape(expr), &data)
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) {
			return true
		}
	}
	return false
}
