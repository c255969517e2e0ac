//go:build integration

package chart

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"sequins/test/expect"
	"sequins/test/process"
)

var update = flag.Bool("update", false, "write what is made from the chart anew")

// compare holds a file against what it should be, or writes it.
func compare(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		expect.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(path)
	expect.NoError(t, err)
	if string(got) == want {
		return
	}
	a, b := strings.Split(string(got), "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%s:%d is out of date; see make manifests\n%s\nwant\n%s", path, i+1, a[i], b[i])
			return
		}
	}
	t.Errorf("%s is out of date: it has %d lines, want %d; see make manifests", path, len(a), len(b))
}

// matrix returns the sets of values that are rendered, by name.
func matrix(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d sets of values, %v", len(files), err)
	}
	all := map[string]string{}
	for _, file := range files {
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = file
	}
	return all
}

func template(t *testing.T, args ...string) string {
	t.Helper()
	out, err := Template("release", args...)
	expect.NoError(t, err)
	return out
}

// TestRenderings compares what the chart renders for each set of values with what it rendered before.
func TestRenderings(t *testing.T) {
	for name, values := range matrix(t) {
		compare(t, filepath.Join("testdata", "rendered", name+".yaml"), withoutFiles(t, template(t, "--values", values)))
	}
}

// withoutFiles replaces the files of the chart in a rendering by their names.
func withoutFiles(t *testing.T, rendered string) string {
	t.Helper()
	for name, indent := range map[string]string{"alerts.yml": "  ", "dashboard.json": "    "} {
		text, err := os.ReadFile(filepath.Join(Dir(), "files", name))
		expect.NoError(t, err)
		whole := indent + strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n"+indent), "\n"+indent+"\n", "\n\n")
		rendered = strings.ReplaceAll(rendered, whole, indent+"# "+name)
	}
	return rendered
}

// TestNotes compares what Helm prints after an installation. Without a cluster it prints nothing, so the notes are rendered as
// an object in a copy of the chart.
func TestNotes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sequins")
	expect.NoError(t, os.CopyFS(dir, os.DirFS(Dir())))
	err := os.Rename(filepath.Join(dir, "templates", "NOTES.txt"), filepath.Join(dir, "files", "NOTES.txt"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "templates", "notes.yaml"), []byte("notes: {{ tpl (.Files.Get \"files/NOTES.txt\") . | toJson }}\n"), 0o644)
	}
	expect.NoError(t, err)
	helm, err := Helm()
	expect.NoError(t, err)
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(matrix(t))) {
		for _, version := range []string{"1.34.0", "1.35.0"} {
			out, err := run(helm, "template", "release", dir, "--namespace", "example", "--kube-version", version, "--values", matrix(t)[name], "--show-only", "templates/notes.yaml")
			expect.NoError(t, err)
			var doc struct{ Notes string }
			expect.NoError(t, yaml.Unmarshal([]byte(out), &doc))
			fmt.Fprintf(&all, "==== %s, Kubernetes %s ====\n%s\n", name, version, doc.Notes)
		}
	}
	compare(t, filepath.Join("testdata", "notes.txt"), all.String())
}

// TestLint has Helm look at the chart, with each set of values.
func TestLint(t *testing.T) {
	helm, err := Helm()
	expect.NoError(t, err)
	for name, values := range matrix(t) {
		if out, err := run(helm, "lint", "--strict", Dir(), "--values", values); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// The chart has the alerts and the dashboard of contrib: Helm reads no files outside of a chart.
func TestCopies(t *testing.T) {
	for name, original := range map[string]string{"alerts.yml": "prometheus/alerts.yml", "dashboard.json": "grafana/sequins.json"} {
		want, err := os.ReadFile(filepath.Join(process.Root(), "packaging", "contrib", original))
		expect.NoError(t, err)
		compare(t, filepath.Join(Dir(), "files", name), string(want))
	}
}

// plain are the manifests for those who do without Helm, with what they are rendered from.
var plain = map[string]struct {
	says string
	args []string
}{
	"sequins.yaml": {`# Pods of sequins that each hold everything, behind one service:
#
#   kubectl apply -f packaging/kubernetes/sequins.yaml
#
# Change the image, the source, and the size of the volumes. docs/KUBERNETES.md describes everything else, and the Helm
# chart (packaging/helm/sequins), from which make manifests renders this file, has values for it.
`, []string{"--set", "sharded=false", "--set", "replicas=2"}},
	"sequins-sharded.yaml": {`# Pods of sequins that divide the data among themselves, coordinated by ZooKeeper:
#
#   kubectl apply -f packaging/kubernetes/sequins-sharded.yaml
#
# Change the image, the source, the servers of ZooKeeper, and the size of the volumes. docs/KUBERNETES.md describes everything
# else, and the Helm chart (packaging/helm/sequins), from which make manifests renders this file, has values for it.
`, []string{"--set", "zookeeper.servers={zk-0.zk.default.svc:2181,zk-1.zk.default.svc:2181,zk-2.zk.default.svc:2181}"}},
}

// TestManifests holds packaging/kubernetes against the chart.
func TestManifests(t *testing.T) {
	for name, m := range plain {
		args := append([]string{"--namespace", "default", "--set", "source=s3://example-bucket/sequins"}, m.args...)
		out, err := Template("sequins", args...)
		expect.NoError(t, err)
		compare(t, filepath.Join(process.Root(), "packaging", "kubernetes", name), m.says+withoutHelm(out))
	}
}

// withoutHelm removes what only Helm needs: its labels, the places of the templates, and the namespace, so that kubectl decides.
func withoutHelm(rendered string) string {
	var b strings.Builder
	for line := range strings.Lines(rendered) {
		switch text := strings.TrimSpace(line); {
		case strings.HasPrefix(text, "helm.sh/chart: "), strings.HasPrefix(text, "app.kubernetes.io/managed-by: "), strings.HasPrefix(line, "# Source: "), line == "  namespace: default\n":
		default:
			b.WriteString(line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n") + "\n"
}
