//go:build integration

package release

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/venv"
)

// modules are those of others that the linker says are in a program, each with its version.
func modules(t *testing.T, program string) map[string]string {
	t.Helper()
	info, err := buildinfo.ReadFile(program)
	expect.NoError(t, err)
	all := map[string]string{}
	for _, m := range info.Deps {
		if m.Replace == nil {
			all[m.Path] = m.Version
		} else if !own(m.Replace) {
			t.Errorf("%s is replaced by %s", m.Path, m.Replace.Path)
		}
	}
	return all
}

// own tells whether a module is a directory of this repository.
func own(m *debug.Module) bool { return strings.HasPrefix(m.Path, "./") }

// Each SBOM is what CycloneDX's own library takes, and lists what is in the program: no more and no less.
func TestSBOM(t *testing.T) {
	python := venv.Python(t, filepath.Join(process.Root(), "test", "release", "requirements.txt"))
	for system, program := range programs {
		file := filepath.Join(dist, fmt.Sprintf("sequins-%s-%s.cdx.json", version, system))
		process.OutputOf(t, python, "-c", `
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(fault) if fault else 0)`, file)
		var bom struct {
			Metadata   struct{ Component component }
			Components []component
		}
		b, err := os.ReadFile(file)
		expect.NoError(t, err)
		expect.NoError(t, json.Unmarshal(b, &bom))
		if c := bom.Metadata.Component; c.Name != "sequins" || c.Version != tag {
			t.Errorf("%s: the SBOM is of %v", system, c)
		}
		want, got := modules(t, program), map[string]string{}
		want["std"] = "go" + goVersion(t)
		for _, c := range bom.Components {
			got[c.Name] = c.Version
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-program +SBOM):\n%s", system, diff)
		}
	}
}

type component struct{ Name, Version string }

// The notices have the licence of each module in the program.
func TestNotices(t *testing.T) {
	for system, program := range programs {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(program), "THIRD_PARTY_NOTICES"))
		expect.NoError(t, err)
		for _, name := range slices.Sorted(maps.Keys(modules(t, program))) {
			want := fmt.Sprintf("\n%s %s: ", name, modules(t, program)[name])
			if !strings.Contains(string(b), want) {
				t.Errorf("%s: no licence of %s", system, name)
			}
		}
		if n := strings.Count(string(b), "Copyright"); n < 50 {
			t.Errorf("%s: %d lines have a copyright", system, n)
		}
	}
}
