//go:build integration

package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/manual"
	"sequins/test/process"
)

// TestManual holds KUBERNETES.md and the README of the chart against the chart: Helm renders their commands and values, and what
// kubectl names is rendered. There is no cluster here.
func TestManual(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(process.Root(), "docs", "KUBERNETES.md"))
	expect.NoError(t, err)
	text := string(page)
	values := valuesOf(t, text)
	first := filepath.Join(t.TempDir(), "values.yaml")
	expect.NoError(t, os.WriteFile(first, []byte(values[0]), 0o600))
	rendered := render(t, "--values", first)
	for _, v := range values[1:] {
		file := filepath.Join(t.TempDir(), "values.yaml")
		expect.NoError(t, os.WriteFile(file, []byte(v), 0o600))
		rendered += render(t, "--values", first, "--values", file)
	}

	readme, err := os.ReadFile(filepath.Join(Dir(), "README.md"))
	expect.NoError(t, err)
	helms, kubectls := 0, 0
	for _, command := range manual.Commands(text + strings.ReplaceAll(string(readme), "\\\n", "")) {
		switch words := strings.Fields(command); {
		case strings.HasPrefix(command, "helm install ") || strings.HasPrefix(command, "helm upgrade "):
			helms++
			if words[2] != "words" || words[3] != "packaging/helm/sequins" {
				t.Errorf("%s: another release or chart", command)
			}
			args := strings.Fields(strings.NewReplacer("--values values.yaml", "--values "+first, "'", "").Replace(strings.Join(words[4:], " ")))
			render(t, args...)
		case words[0] == "kubectl":
			kubectls++
			checkNames(t, command, rendered)
		}
	}
	if len(values) < 8 || helms < 3 || kubectls < 10 {
		t.Errorf("%d sets of values, %d commands of helm, %d of kubectl", len(values), helms, kubectls)
	}
}

// valuesOf are the sets of values on a page: its blocks of YAML that are not manifests.
func valuesOf(t *testing.T, text string) (all []string) {
	t.Helper()
	for _, b := range manual.Blocks(text) {
		if b.Language == "yaml" && !strings.Contains(b.Text, "apiVersion:") {
			all = append(all, b.Text)
		}
	}
	if len(all) == 0 {
		t.Fatal("no values")
	}
	return all
}

func render(t *testing.T, args ...string) string {
	t.Helper()
	out, err := Template("words", args...)
	if err != nil {
		t.Error(err)
	}
	return out
}

// ofKubernetes are names in commands that are not in a rendering: what there is anyway, and what the commands make or mention.
var ofKubernetes = []string{"words"}

var (
	named   = regexp.MustCompile(`\b(statefulset|service|pod|pvc|secret|namespace)(?:/| generic | )([a-z][a-z0-9-]+)`)
	podName = regexp.MustCompile(`(?:exec|logs|exec --stdin) ([a-z][a-z0-9-]+)`)
)

// checkNames checks that the chart makes or uses what a command of kubectl names.
func checkNames(t *testing.T, command, rendered string) {
	t.Helper()
	var names []string
	for _, m := range named.FindAllStringSubmatch(command, -1) {
		names = append(names, m[2])
	}
	for _, m := range podName.FindAllStringSubmatch(command, -1) {
		names = append(names, m[1])
	}
	for _, name := range names {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "store-"), "-0")
		if !slices.Contains(ofKubernetes, name) && !strings.Contains(rendered, "name: "+name+"\n") && !strings.Contains(rendered, "name: \""+name+"\"\n") {
			t.Errorf("%s: the chart makes and uses no %s", command, name)
		}
	}
	if _, file, found := strings.Cut(command, "apply --filename "); found {
		if _, err := os.Stat(filepath.Join(process.Root(), file)); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}
