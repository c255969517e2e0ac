//go:build integration

package single

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

// TestCompleteness runs a node with the default rules. It is told once to look at its source, and looks
// again by itself where it has to.
func TestCompleteness(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra = "require_success_file = \"auto\"\nsettle = \"200ms\"\nrefresh_period = \"0s\""
	write := func(name string, keys ...string) {
		t.Helper()
		sequencefiles.WriteFile(t, filepath.Join(source, name), sequencefiles.WriterOptions{}, func(add func(key, value string)) {
			for _, key := range keys {
				add(key, name)
			}
		})
	}
	touch := func(name, content string) {
		t.Helper()
		expect.NoError(t, os.WriteFile(filepath.Join(source, name), []byte(content), 0o644))
	}
	write("plain/1/part-0", "a")
	write("committed/1/part-0", "a")
	write("committed/1/part-1", "b")
	touch("committed/1/_started_1", "")
	writeVersion(t, source, "marked", "1", 1, 10, numbered("1"))
	write("marked/2/part-0", "a")
	write("broken/1/part-0", "a")
	touch("broken/1/_committed_1", `{"added": ["part-0"], "removed": []}`)
	expect.NoError(t, os.MkdirAll(filepath.Join(source, "broken/2"), 0o755))
	expect.NoError(t, syscall.Mkfifo(filepath.Join(source, "broken/2/_SUCCESS"), 0o644))
	write("table/1/data/part-0", "a")

	n := process.Serve(t, c, "plain", "1")
	n.WaitCurrent(t, "marked", "1")
	n.WaitCurrent(t, "broken", "1")
	wantText(t, waitError(t, n, "broken", "2"), "_SUCCESS", "not a regular file")
	wantText(t, waitError(t, n, "table", "1"), "only directories (data)")
	if versions := n.Health(t)["committed"]; len(versions) > 0 {
		t.Errorf("a version whose commit is not done: %+v", versions)
	}
	touch("committed/1/_committed_1", fmt.Sprintf(`{"added": [%q], "removed": []}`, "part-1"))
	touch("marked/2/_SUCCESS", "")
	n.Signal(t, syscall.SIGHUP)
	n.WaitCurrent(t, "committed", "1")
	n.WaitCurrent(t, "marked", "2")
	n.Expect(t, "/committed/b", 200, "1", "committed/1/part-1")
	n.Expect(t, "/committed/a", 404, "1", "")
}
