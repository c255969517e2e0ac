package metrics

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/observe/status"
	"sequins/test/expect"

	"github.com/google/go-cmp/cmp"
)

// everything returns metrics in which everything was counted once.
func everything(t *testing.T) *Metrics {
	m := New()
	m.Server.DB("a").Clients.Done(0, 200, 1, 1)
	m.Server.ChecksumFailure("a")
	m.Load.Begin("a")(nil)
	m.Transfer.Streams.Add(1, "given")
	m.Transfer.Given.Add(1, "a")
	m.Transfer.Received.Add(1, "a")
	m.Transfer.Blocks.Add(1, "a")
	m.Transfer.Refused.Add(1, "a")
	m.Load.Begin("a")(errors.New("failed"))
	m.Load.Bytes.Add(1, "a")
	m.Load.Records.Add(1, "a")
	m.Load.Unchanged.Add(1, "a")
	m.Events.Events.Add(1, "a", string(status.EventActive))
	m.Process.SetStore(t.TempDir())
	m.Server.SetState(func() State {
		return State{Status: status.Status{Node: "n", Certificate: status.Certificate{Expires: time.Now()}, Disk: status.Disk{Bytes: 2, Free: 1}, ZooKeeper: &status.ZooKeeper{}, DBs: map[string]status.DB{"a": {Versions: map[string]status.Version{
			"1": {Nodes: map[string]status.OnNode{"n": {State: status.Active, Current: true, ActiveAt: time.Now()}}},
		}}}}}
	})
	return m
}

var metricRow = regexp.MustCompile("^\\| `(sequins_[a-z_]+)(?:\\{([a-z,]+)\\})?` \\| (Histogram: )?.+ \\|$")

// typeOf returns the type of a metric in docs/RUNBOOK.md: the names of counters end in _total, and histograms are marked.
func typeOf(name string, isHistogram bool) string {
	switch {
	case isHistogram:
		return "histogram"
	case strings.HasSuffix(name, "_total"):
		return "counter"
	}
	return "gauge"
}

// docs/RUNBOOK.md lists exactly the exposed metrics, with types and labels.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/RUNBOOK.md")
	expect.NoError(t, err)
	documented := map[string]string{}
	for line := range strings.Lines(string(text)) {
		m := metricRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			if strings.HasPrefix(line, "| `sequins_") {
				t.Errorf("not understood: %s", line)
			}
			continue
		}
		labels := strings.Split(m[2], ",")
		slices.Sort(labels)
		documented[m[1]] = typeOf(m[1], m[3] != "") + " " + strings.Join(labels, ",")
	}
	exposed := map[string]string{}
	m := everything(t)
	families, err := m.Registry().Gather()
	expect.NoError(t, err)
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "sequins_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() { // they are sorted
			labels = append(labels, l.GetName())
		}
		exposed[f.GetName()] = strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ",")
	}
	if diff := cmp.Diff(documented, exposed); diff != "" {
		t.Errorf("(-documented +exposed):\n%s", diff)
	}
	for _, name := range described(t) {
		if _, found := exposed[name]; !found {
			t.Errorf("%s is described, and this test has not had it counted", name)
		}
	}
}

// described returns the names of all metrics that the files of this package have.
func described(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	name := regexp.MustCompile(`"(sequins_[a-z_]+)"`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		expect.NoError(t, err)
		for _, found := range name.FindAllStringSubmatch(string(source), -1) {
			names = append(names, found[1])
		}
	}
	return names
}
