//go:build integration

package manual

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/shard"
	"sequins/test/expect"
	"sequins/test/process"
)

// The programs of the page on the HTTP interface, and the one in Java that it names, run and print what the page says.
func TestClientsOfTheManual(t *testing.T) {
	t.Parallel()
	_, n := example(t)
	here := strings.NewReplacer("node1:9599", n.Addr, "node2:9599", n.Addr)
	ran := map[string]bool{}
	for _, b := range Blocks(page(t, "API.md")) {
		program := here.Replace(b.Text)
		switch b.Language {
		case "go":
			runClient(t, "main.go", program, []string{"go", "run"}, `apple is "a fruit\n" in version 2026-01-31`, "absent is absent", `["a fruit\n" "a root\n"]`, "session: words=2026-01-31")
		case "python":
			runClient(t, "main.py", program, []string{"python3"}, `apple is b'a fruit\n' in version 2026-01-31`, "absent is None", `[b'a fruit\n', b'a root\n'] in one version`, "session: words=2026-01-31")
		case "json":
			checkFields(t, n, b.Text)
		}
		ran[b.Language] = true
	}
	for _, language := range []string{"go", "python", "json"} {
		if !ran[language] {
			t.Errorf("API.md has no %s", language)
		}
	}
	java, err := os.ReadFile(filepath.Join(process.Root(), "packaging", "contrib", "java", "Words.java"))
	expect.NoError(t, err)
	runClient(t, "Words.java", here.Replace(string(java)), []string{"java"}, "apple is a fruit", "absent is null", "a fruit, null, a root")
}

// runClient runs a program, which has to print some texts.
func runClient(t *testing.T, name, program string, command []string, want ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	expect.NoError(t, os.WriteFile(file, []byte(program), 0o644))
	cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], file)...)
	cmd.Dir = process.Root()
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(process.Root(), "packaging", "contrib", "python"), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
	for _, text := range want {
		if !strings.Contains(string(out), text) {
			t.Errorf("%s does not print %q:\n%s", name, text, out)
		}
	}
}

// checkFields checks that the map on the page has the fields of a node's answer, and that the page describes each.
func checkFields(t *testing.T, n *process.Node, shown string) {
	t.Helper()
	var documented, answered map[string]any
	expect.NoError(t, json.Unmarshal([]byte(shown), &documented))
	expect.NoError(t, json.Unmarshal(n.Get(t, "/words?partitions").Body, &answered))
	for field := range answered {
		if documented[field] == nil || !strings.Contains(page(t, "API.md"), "\n| `"+field+"` |") {
			t.Errorf("API.md does not describe %s", field)
		}
	}
	if len(documented) != len(answered) {
		t.Errorf("the map of API.md is %v, and a node answers %v", documented, answered)
	}
}

// The examples beside the page on the HTTP interface are the partitions of each partitioner.
func TestPartitionsOfTheManual(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(process.Root(), "docs", "partitions.tsv"))
	expect.NoError(t, err)
	head, rows, _ := strings.Cut(string(text), "\n")
	if head != "partitioner\tkey\tpartition of 1000" {
		t.Errorf("the columns are %q", head)
	}
	checked := map[string]int{}
	for line := range strings.Lines(rows) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 3 {
			t.Fatalf("%q", line)
		}
		p, err := shard.ParsePartitioner(cells[0])
		if want := fmt.Sprint(p.Partition([]byte(cells[1]), 1000)); err != nil || cells[2] != want {
			t.Errorf("%s: %s is %s; want %s, %v", cells[1], cells[0], cells[2], want, err)
		}
		checked[cells[0]]++
	}
	for _, p := range shard.Partitioners() {
		if checked[p.String()] < 4 {
			t.Errorf("%d keys of %v", checked[p.String()], p)
		}
	}
}
