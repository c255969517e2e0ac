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
	"sequins/test/process"
)

// The programs of the page on clients run and print what the page says.
func TestClientsOfTheManual(t *testing.T) {
	t.Parallel()
	_, n := example(t)
	here := strings.NewReplacer("node1:9599", n.Addr, "node2:9599", n.Addr)
	ran := map[string]bool{}
	for _, b := range Blocks(page(t, "CLIENTS.md")) {
		program := here.Replace(b.Text)
		switch b.Language {
		case "go":
			runClient(t, "main.go", program, []string{"go", "run"}, `apple is "a fruit\n" in version 2026-01-31`, "absent is absent", `["a fruit\n" "a root\n"]`, "session: words=2026-01-31")
		case "python":
			runClient(t, "main.py", program, []string{"python3"}, `apple is b'a fruit\n' in version 2026-01-31`, "absent is None", `[b'a fruit\n', b'a root\n'] in one version`, "session: words=2026-01-31")
		case "java":
			runClient(t, "Words.java", program, []string{"java"}, "apple is a fruit", "absent is null", "a fruit, null, a root")
		case "json":
			checkFields(t, n, b.Text)
		}
		ran[b.Language] = true
	}
	if len(ran) != 4 {
		t.Errorf("programs in %v", ran)
	}
}

// runClient runs a program, which has to print some texts.
func runClient(t *testing.T, name, program string, command []string, want ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal([]byte(shown), &documented); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(n.Get(t, "/words?partitions").Body, &answered); err != nil {
		t.Fatal(err)
	}
	for field := range answered {
		if documented[field] == nil || !strings.Contains(page(t, "CLIENTS.md"), "\n| `"+field+"` |") {
			t.Errorf("CLIENTS.md does not describe %s", field)
		}
	}
	if len(documented) != len(answered) {
		t.Errorf("the map of CLIENTS.md is %v, and a node answers %v", documented, answered)
	}
}

// The chapter on clients has the partitions of some keys right.
func TestPartitionsOfTheManual(t *testing.T) {
	_, rest, _ := strings.Cut(page(t, "CLIENTS.md"), "With 1,000 partitions, these keys are in:\n")
	var columns []string // of the table, with their backquotes
	checked := map[string]int{}
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case strings.HasPrefix(line, "##"):
			rest = ""
		case strings.HasPrefix(line, "| key |"):
			columns = cells[1:]
		case rest != "" && strings.HasPrefix(line, "| "):
			for i, column := range columns {
				name := strings.Trim(column, " `")
				p, err := shard.ParsePartitioner(name)
				if want := fmt.Sprintf(" %d ", p.Partition([]byte(strings.Trim(cells[0], " `")), 1000)); err != nil || cells[i+1] != want {
					t.Errorf("%s: %s is%s; want%s, %v", cells[0], name, cells[i+1], want, err)
				}
				checked[name]++
			}
		}
	}
	for _, p := range shard.Partitioners() {
		if checked[p.String()] < 4 {
			t.Errorf("%d keys of %v", checked[p.String()], p)
		}
	}
}
