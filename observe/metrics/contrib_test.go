package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"sequins/test/expect"
)

var (
	// metricName matches the metrics of sequins in an expression.
	metricName = regexp.MustCompile(`\bsequins_[a-z_]+`)
	// foreignName matches the metrics of the process and Go collectors.
	foreignName = regexp.MustCompile(`\b(process|go)_[a-z_]+`)
)

// unknownIn returns the metrics of an expression that a scrape does not contain.
func unknownIn(expr string, known []string) (unknown []string) {
	for _, name := range append(metricName.FindAllString(expr, -1), foreignName.FindAllString(expr, -1)...) {
		base := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
		if !slices.Contains(known, name) && !slices.Contains(known, base) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// exposedNames returns the names of all metrics, including the process collector's.
func exposedNames(t *testing.T) (names []string) {
	t.Helper()
	families, err := everything(t).Registry().Gather()
	expect.NoError(t, err)
	for _, f := range families {
		names = append(names, f.GetName())
	}
	return names
}

// rule is an alert.
type rule struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

// Every alert uses existing metrics, fires in the test of the rules, and has a section in the manual.
func TestAlerts(t *testing.T) {
	var rules struct {
		Groups []struct{ Rules []rule }
	}
	readYAML(t, "../../packaging/contrib/prometheus/alerts.yml", &rules)
	var tests struct {
		Tests []struct {
			Cases []struct {
				Alertname string
				Expected  []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	readYAML(t, "../../packaging/contrib/prometheus/alerts_test.yml", &tests)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, c := range test.Cases {
			fires[c.Alertname] = fires[c.Alertname] || len(c.Expected) > 0
			quiet[c.Alertname] = quiet[c.Alertname] || len(c.Expected) == 0
		}
	}
	manual, err := os.ReadFile("../../docs/RUNBOOK.md")
	expect.NoError(t, err)
	known := exposedNames(t)
	if len(rules.Groups) != 1 || len(rules.Groups[0].Rules) == 0 {
		t.Fatalf("%d groups of rules", len(rules.Groups))
	}
	for _, rule := range rules.Groups[0].Rules {
		if unknown := unknownIn(rule.Expr, known); unknown != nil {
			t.Errorf("%s is made of %v, which there is not", rule.Alert, unknown)
		}
		if !fires[rule.Alert] || !quiet[rule.Alert] {
			t.Errorf("%s fires in a test: %v; is quiet in one: %v", rule.Alert, fires[rule.Alert], quiet[rule.Alert])
		}
		if !strings.Contains(string(manual), "\n### "+rule.Alert+"\n") {
			t.Errorf("RUNBOOK.md has no section on %s", rule.Alert)
		}
		if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" {
			t.Errorf("%s has no severity or no summary", rule.Alert)
		}
	}
	for _, section := range regexp.MustCompile(`(?m)^### (Sequins\w+)$`).FindAllStringSubmatch(string(manual), -1) {
		if !slices.ContainsFunc(rules.Groups[0].Rules, func(r rule) bool { return r.Alert == section[1] }) {
			t.Errorf("RUNBOOK.md has a section on %s, which is no alert", section[1])
		}
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Every panel uses existing metrics, and panels do not overlap.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../packaging/contrib/grafana/sequins.json")
	expect.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr string }
		}
		Templating struct{ List []struct{ Name string } }
	}
	expect.NoError(t, json.Unmarshal(text, &dashboard))
	known := exposedNames(t)
	variables := []string{"$__rate_interval", "$__all"}
	for _, v := range dashboard.Templating.List {
		variables = append(variables, "$"+v.Name)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q: duplicate id, or no targets", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			if unknown := unknownIn(target.Expr, known); unknown != nil || !metricName.MatchString(target.Expr) && !strings.Contains(target.Expr, `job="sequins"`) {
				t.Errorf("%s uses unknown metrics %v, or none of sequins: %s", p.Title, unknown, target.Expr)
			}
			for _, v := range regexp.MustCompile(`\$\w+`).FindAllString(target.Expr, -1) {
				if !slices.Contains(variables, v) {
					t.Errorf("%s: there is no variable %s", p.Title, v)
				}
			}
		}
		g := p.GridPos
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %q, or out of the grid", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
	if len(dashboard.Panels) < 10 {
		t.Errorf("%d panels", len(dashboard.Panels))
	}
}
