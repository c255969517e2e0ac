package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/CONFIGURATION.md")

const manualPath = "../docs/CONFIGURATION.md"

const manualHead = `# Configuration

This page is made from [sequins.conf.example](../sequins.conf.example), which is a configuration with nothing but the
defaults: ` + "`go test ./config -update`" + ` writes it anew.

`

// The chapter on the configuration says what the example says.
func TestManual(t *testing.T) {
	raw, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	want := manual(string(raw))
	for _, key := range Keys() {
		name := key.Name[strings.LastIndexByte(key.Name, '.')+1:]
		if !strings.Contains(want, "\n### "+name+"\n") {
			t.Errorf("%s is not in it", key.Name)
		}
	}
	if *update {
		if err := os.WriteFile(manualPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(manualPath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s (-want +got), rewritten by -update:\n%s", manualPath, diff)
	}
}

// manual makes a chapter of an example: a section of each table, and one of each key below it.
func manual(example string) string {
	var out strings.Builder
	out.WriteString(manualHead)
	var prose []string
	paragraph := func() {
		if len(prose) > 0 {
			fmt.Fprintf(&out, "%s\n\n", strings.Join(prose, "\n"))
		}
		prose = nil
	}
	started := false
	for line := range strings.Lines(example) {
		line = strings.TrimSuffix(line, "\n")
		text := strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ")
		if m := tableLine.FindStringSubmatch(line); m != nil {
			paragraph()
			fmt.Fprintf(&out, "## [%s]\n\n", strings.Replace(m[2], "db.example", "db.NAME", 1))
		} else if m := keyLine.FindStringSubmatch(line); m != nil {
			if !started {
				out.WriteString("## At the top\n\n")
			}
			started = true
			reload := "after a restart"
			if strings.Contains(strings.Join(prose, " "), "[SIGHUP]") {
				reload = "at SIGHUP"
			}
			what := "Default"
			if m[1] == "" {
				what = "For example"
			}
			fmt.Fprintf(&out, "### %s\n\n%s: `%s`. Takes effect %s.\n\n", m[2], what, m[3], reload)
			for i := range prose {
				prose[i] = strings.TrimSuffix(strings.ReplaceAll(prose[i], "[SIGHUP]", ""), " ")
			}
			if len(prose) > 0 && prose[len(prose)-1] == "" {
				prose = prose[:len(prose)-1]
			}
			paragraph()
		} else if line == "" || text == "" {
			paragraph()
		} else {
			prose = append(prose, strings.NewReplacer("<", "\\<", "*", "\\*").Replace(text))
		}
	}
	paragraph()
	return strings.TrimRight(out.String(), "\n") + "\n"
}
