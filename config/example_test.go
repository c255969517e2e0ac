package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

const examplePath = "../sequins.conf.example"

var (
	tableLine = regexp.MustCompile(`^(# )?\[([a-z0-9.]+)\]$`)
	keyLine   = regexp.MustCompile(`^(# )?([a-z0-9_]+) = (.+)$`)
)

// entry is one key of the example: its dotted name, and the prose above it.
type entry struct{ key, prose string }

// readExample returns the entries, the file with everything uncommented, and all of its prose.
func readExample(t *testing.T) (entries []entry, uncommented, prose string) {
	t.Helper()
	raw, err := os.ReadFile(examplePath)
	expect.NoError(t, err)
	var out, all []string
	table, above := "", ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if m := tableLine.FindStringSubmatch(line); m != nil {
			table, above = m[2]+".", ""
			line = strings.TrimPrefix(line, "# ")
		} else if m := keyLine.FindStringSubmatch(line); m != nil {
			entries = append(entries, entry{table + m[2], above})
			line = strings.TrimPrefix(line, "# ")
		} else if line == "" {
			above = ""
		} else {
			above += strings.TrimPrefix(line, "# ") + " "
			all = append(all, line)
		}
		out = append(out, line)
	}
	return entries, strings.Join(out, "\n"), strings.Join(all, "\n")
}

func TestExampleLoadsAndIsDefault(t *testing.T) {
	want := Default()
	want.Source = "/srv/sequins"
	got, warnings, err := Load(examplePath)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %v", err, warnings)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the example sets more than the source (-want +got):\n%s", diff)
	}
	_, uncommented, _ := readExample(t)
	got, warnings, err = load(uncommented)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("uncommented: error %v, warnings %v", err, warnings)
	}
	want.DB = map[string]DB{"example": want.allDBs()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the example shows other defaults (-want +got):\n%s", diff)
	}
}

func TestExampleHasEveryKeyWithProse(t *testing.T) {
	entries, _, all := readExample(t)
	var documented, known []string
	for _, e := range entries {
		e.key = strings.Replace(e.key, "db.example.", "db.<name>.", 1)
		documented = append(documented, e.key)
		if len(strings.Fields(e.prose)) < 3 {
			t.Errorf("%s: no prose above it: %q", e.key, e.prose)
		}
		at := slices.IndexFunc(keys(), func(k field) bool { return k.key == e.key })
		if at >= 0 && strings.Contains(e.prose, "[SIGHUP]") != keys()[at].is("reload") {
			t.Errorf("%s: reloadable is %t, but the prose is %q", e.key, keys()[at].is("reload"), e.prose)
		}
	}
	for _, k := range keys() {
		known = append(known, k.key)
	}
	slices.Sort(documented)
	slices.Sort(known)
	if diff := cmp.Diff(known, documented); diff != "" {
		t.Errorf("keys (-known +documented):\n%s", diff)
	}
	for _, key := range fileKeys() {
		if table, name, _ := strings.Cut(key, "."); !regexp.MustCompile(`(?s)A secret can be in a file.*\b` + name + `\b.*\[` + table + `\].*read at the start`).MatchString(all) {
			t.Errorf("%s can be in a file, and the example does not say so", key)
		}
	}
	for key := range retired {
		if !regexp.MustCompile(`\b` + key + `\b`).MatchString(all) {
			t.Errorf("%s is retired, and the example does not say so", key)
		}
	}
}
