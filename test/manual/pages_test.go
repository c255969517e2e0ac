//go:build integration

package manual

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile("[^a-z0-9 _-]")
)

// pages are all that is written for people, below the top.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "bench/README.md", "packaging/helm/sequins/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/design/*.md"} {
		found, err := filepath.Glob(filepath.Join(process.Root(), pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(found), err)
		}
		for _, path := range found {
			name, err := filepath.Rel(process.Root(), path)
			expect.NoError(t, err)
			all = append(all, name)
		}
	}
	return all
}

// anchors are the fragments by which links can refer to headings.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		found[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return found
}

// chapter returns what is below a heading of the second level, up to the next one.
func chapter(t *testing.T, file, heading string) string {
	t.Helper()
	_, after, found := strings.Cut(page(t, file), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no chapter %q", file, heading)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

// Every link to something of ours leads there.
func TestLinks(t *testing.T) {
	followed := 0
	for _, name := range pages(t) {
		text, err := os.ReadFile(filepath.Join(process.Root(), name))
		expect.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			path := filepath.Join(process.Root(), filepath.Dir(name), file)
			if file == "" {
				path = filepath.Join(process.Root(), name)
			}
			target, err := os.ReadFile(path)
			if info, statErr := os.Stat(path); err != nil && (statErr != nil || !info.IsDir()) {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			} else if anchor != "" && !anchors(string(target))[anchor] {
				t.Errorf("%s links to %s, where there is no such heading", name, m[1])
			}
			followed++
		}
	}
	if followed < 30 {
		t.Errorf("%d links were followed", followed)
	}
}

// The manual's first page leads to all others.
func TestContents(t *testing.T) {
	contents := page(t, "README.md")
	for _, name := range pages(t) {
		if file, ok := strings.CutPrefix(name, "docs/"); ok && file != "README.md" && !strings.Contains(contents, "("+file+")") {
			t.Errorf("docs/README.md does not lead to %s", name)
		}
	}
}

// The page on migration has every key of the old files, and says that keys without effect cause a warning.
func TestMigrationHasEveryOldKey(t *testing.T) {
	old, err := os.ReadFile(filepath.Join(process.Root(), "config", "testdata", "every-old-key.conf"))
	expect.NoError(t, err)
	rows := map[string]string{} // by key, with its table
	for line := range strings.Lines(page(t, "MIGRATION.md")) {
		columns := strings.SplitN(line, "|", 3)
		if len(columns) < 3 {
			continue
		}
		table := ""
		for _, m := range regexp.MustCompile("`(?:(\\[\\w+\\]) ?)?(\\w*)`").FindAllStringSubmatch(columns[1], -1) {
			if m[1] != "" {
				table = m[1]
			}
			rows[table+m[2]] = columns[2]
		}
	}
	table, keys := "", 0
	for line := range strings.Lines(string(old)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name, _, _ := strings.Cut(strings.Trim(line, "[]"), ".")
			table = "[" + name + "]"
			continue
		}
		key, _, found := strings.Cut(line, " =")
		if !found || strings.HasPrefix(line, "#") {
			continue
		}
		row, known := rows[table+key]
		if !known {
			row, known = rows[table]
		}
		if !known {
			t.Errorf("MIGRATION.md has no %s%s", table, key)
		}
		if retired := slices.Contains(strings.Fields("write_buffer_size goforit_flag_json_path max_retries max_replication connect_timeout expvars"), key) || table == "[test]"; retired != strings.Contains(row, "does nothing") {
			t.Errorf("MIGRATION.md says of %s%s: %s", table, key, row)
		}
		keys++
	}
	if keys < 30 {
		t.Errorf("%d old keys", keys)
	}
}

// The page on performance has no figures of its own: each in a table is in the benchmarks.
func TestFiguresAreMeasured(t *testing.T) {
	measured, figures := page(t, "../bench/README.md"), 0
	for line := range strings.Lines(page(t, "PERFORMANCE.md")) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, n := range regexp.MustCompile(`\| (\d[\d.]*)\b`).FindAllStringSubmatch(line, -1) {
			if !strings.Contains(measured, " "+n[1]+" ") {
				t.Errorf("%s is not in bench/README.md: %s", n[1], line)
			}
			figures++
		}
	}
	if figures < 10 {
		t.Errorf("%d figures", figures)
	}
}
