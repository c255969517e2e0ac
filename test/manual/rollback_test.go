//go:build integration

package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestRollingBack runs the commands of the chapter in their order, beside a node with three versions.
func TestRollingBack(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	example := filepath.Join(process.Root(), "docs", "example", "words", "2026-01-31")
	for _, version := range []string{"2026-01-30", "2026-01-31", "2026-02-01"} {
		expect.NoError(t, os.CopyFS(filepath.Join(source, "words", version), os.DirFS(example)))
	}
	n := process.Serve(t, process.Config{Source: source, Store: filepath.Join(t.TempDir(), "store"), Extra: "refresh_period = \"300ms\"\n"}, "words", "2026-02-01")
	var found []string
	for _, command := range Commands(chapter(t, "TRUST.md", "Rolling back")) {
		if ofRollingBack.MatchString(command) && command != "sequins refresh" {
			found = append(found, command)
		}
	}
	served := []string{"2026-01-31", "2026-01-30", "2026-01-30", "2026-01-30"} // after each of them
	if len(found) != len(served) {
		t.Fatalf("the chapter has the commands %q", found)
	}
	for i, command := range found {
		runIt(t, n, strings.ReplaceAll(command, "node1:9599", n.Addr))
		n.WaitCurrent(t, "words", served[i])
	}
}
