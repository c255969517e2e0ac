//go:build integration

package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/venv"
)

// The modules whose CustomResourceDefinitions the chart has objects of, and their files.
var definitions = map[string][]string{
	"github.com/prometheus-operator/prometheus-operator@v0.85.0": {
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
	},
	"github.com/cert-manager/cert-manager@v1.21.2": {"deploy/crds/cert-manager.io_certificates.yaml"},
}

// crds returns the files of all definitions.
func crds(t *testing.T) (files []string) {
	t.Helper()
	for module, names := range definitions {
		out, err := run("go", "mod", "download", "-json", module)
		expect.NoError(t, err)
		var at struct{ Dir string }
		expect.NoError(t, json.Unmarshal([]byte(out), &at))
		for _, name := range names {
			files = append(files, filepath.Join(at.Dir, name))
		}
	}
	return files
}

// validate checks objects against the schemas of Kubernetes, the oldest that the chart takes to the newest.
func validate(t *testing.T, files ...string) (string, error) {
	t.Helper()
	python := venv.Python(t, "requirements.txt")
	return run(python, append([]string{"validate.py", "1.27,1.31,1.34,1.37", strings.Join(crds(t), ",")}, files...)...)
}

// TestValid holds all renderings and manifests against the schemas of Kubernetes, of the Prometheus operator and of cert-manager.
func TestValid(t *testing.T) {
	var files []string
	dir := t.TempDir()
	for name, values := range matrix(t) {
		file := filepath.Join(dir, name+".yaml")
		expect.NoError(t, os.WriteFile(file, []byte(template(t, "--values", values)), 0o644))
		files = append(files, file)
	}
	for name := range plain {
		files = append(files, filepath.Join(process.Root(), "packaging", "kubernetes", name))
	}
	manual, err := os.ReadFile(filepath.Join(process.Root(), "docs", "KUBERNETES.md"))
	expect.NoError(t, err)
	for i, block := range regexp.MustCompile("(?s)```yaml\n(apiVersion:.*?)```").FindAllSubmatch(manual, -1) {
		file := filepath.Join(dir, fmt.Sprintf("manual-%d.yaml", i))
		expect.NoError(t, os.WriteFile(file, block[1], 0o644))
		files = append(files, file)
	}
	out, err := validate(t, files...)
	expect.NoError(t, err)
	const want = "kinds: Certificate ConfigMap Deployment NetworkPolicy PodDisruptionBudget PodMonitor PrometheusRule Service ServiceAccount ServiceMonitor StatefulSet\n"
	if out != want {
		t.Errorf("%swant %s", out, want)
	}
}

// Objects that the API server would refuse, or would take something away from, are found.
func TestInvalid(t *testing.T) {
	good, dir := template(t, "--values", "testdata/values/everything.yaml"), t.TempDir()
	var files []string
	for name, change := range map[string][2]string{
		"an unknown field":                {"minReadySeconds: 60", "minReadySecond: 60"},
		"a wrong type":                    {"terminationGracePeriodSeconds: 75", `terminationGracePeriodSeconds: "75"`},
		"an unknown field of a monitor":   {"interval: 30s", "intervall: 30s"},
		"an unknown field of Certificate": {"rotationPolicy: Always", "rotation: Always"},
		"a wrong word of Certificate":     {"rotationPolicy: Always", "rotationPolicy: Sometimes"},
		"a rule without an expression":    {`expr: up{job="sequins"} == 0`, "for: 1m"},
	} {
		if !strings.Contains(good, change[0]) {
			t.Fatalf("%s: there is no %s", name, change[0])
		}
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".yaml")
		expect.NoError(t, os.WriteFile(file, []byte(strings.Replace(good, change[0], change[1], 1)), 0o644))
		files = append(files, file)
	}
	_, err := validate(t, files...)
	for _, file := range files {
		if err == nil || !strings.Contains(err.Error(), "\n"+file+": ") {
			t.Errorf("%s is not found: %v", filepath.Base(file), err)
		}
	}
}
