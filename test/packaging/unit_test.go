//go:build integration

package packaging

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// The unit is one that systemd understands, and it gives the process little that it does not need:
// systemd-analyze counts what it could do, from 0 to 10.
func TestUnit(t *testing.T) {
	path := filepath.Join(process.Root(), "packaging", "sequins.service")
	process.OutputOf(t, "systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", path)
	unit, err := os.ReadFile(path)
	expect.NoError(t, err)
	// The program and its manual are not installed here.
	here := strings.NewReplacer("/usr/bin/sequins", process.Binary(t), "man:sequins(1) ", "").Replace(string(unit))
	copied := filepath.Join(t.TempDir(), "sequins.service")
	expect.NoError(t, os.WriteFile(copied, []byte(here), 0o644))
	if said := combined(t, "systemd-analyze", "verify", copied); said != "" {
		t.Errorf("systemd-analyze verify: %s", said)
	}
	bad := strings.Replace(here, "TimeoutStopSec=60", "TimeoutStopSecs=60", 1)
	expect.NoError(t, os.WriteFile(copied, []byte(bad), 0o644))
	if said := combined(t, "systemd-analyze", "verify", copied); !strings.Contains(said, "TimeoutStopSecs") {
		t.Errorf("systemd-analyze verify does not see a key that there is not: %s", said)
	}
}

// share is the first column of a line of strace's table, in percent.
var share = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// The unit allows every system call that a node makes on its way from the start over loads, requests and
// upgrades to its end.
func TestUnitAllowsWhatIsCalled(t *testing.T) {
	unit, err := os.ReadFile(filepath.Join(process.Root(), "packaging", "sequins.service"))
	expect.NoError(t, err)
	allowed := allowedCalls(t, string(unit))
	if allowed["mount"] || !allowed["preadv2"] {
		t.Fatal("the filter is misunderstood")
	}
	dir := t.TempDir()
	source, calls := filepath.Join(dir, "source"), filepath.Join(dir, "calls")
	writeWords(t, source)
	n := process.Start(t, process.Config{
		Source: source, Store: filepath.Join(dir, "store"), Extra: `scrub_period = "100ms"`,
		Prefix: []string{"strace", "-D", "-f", "-qq", "-c", "-o", calls},
	})
	n.WaitCurrent(t, "words", "1")
	expect.NoError(t, os.Rename(filepath.Join(source, "words", "1"), filepath.Join(source, "words", "2")))
	n.Signal(t, syscall.SIGHUP)
	n.WaitCurrent(t, "words", "2")
	// Once a second the node asks what of that which is read is in memory.
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		expectWord(t, n.Addr)
	}
	n.WaitLog(t, "msg=scrubbed")
	n.Stop(t)
	var table []string
	process.Eventually(t, "strace has counted", func() bool {
		text, err := os.ReadFile(calls)
		table = strings.Split(strings.TrimSpace(string(text)), "\n")
		return err == nil && strings.HasSuffix(table[len(table)-1], "total")
	})
	made := map[string]bool{}
	for _, line := range table { // a head, lines, and a sum, or several of these, and what strace says of processes that end
		if fields := strings.Fields(line); len(fields) > 3 && share.MatchString(fields[0]) {
			made[fields[len(fields)-1]] = true
		}
	}
	delete(made, "total")
	if !made["preadv2"] || !made["mincore"] || !made["setpriority"] {
		t.Errorf("the node did not do all that it does: it called %v", slices.Sorted(maps.Keys(made)))
	}
	for call := range made {
		if !allowed[call] {
			t.Errorf("the unit does not allow %s, of\n%s", call, strings.Join(table, "\n"))
		}
	}
}

// allowedCalls are those of a unit's filter: the sets of the first line, less those of the lines with a ~,
// and single calls.
func allowedCalls(t *testing.T, unit string) map[string]bool {
	sets := map[string][]string{}
	set := ""
	for line := range strings.Lines(process.OutputOf(t, "systemd-analyze", "syscall-filter", "--no-pager")) {
		name := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "@"):
			set = name
		case strings.HasPrefix(line, " ") && !strings.HasPrefix(name, "#"):
			sets[set] = append(sets[set], name)
		}
	}
	allowed := map[string]bool{}
	var apply func(name string, to bool)
	apply = func(name string, to bool) {
		if !strings.HasPrefix(name, "@") {
			allowed[name] = to
		}
		for _, member := range sets[name] {
			apply(member, to)
		}
	}
	for line := range strings.Lines(unit) {
		if names, found := strings.CutPrefix(strings.TrimSpace(line), "SystemCallFilter="); found {
			names, without := strings.CutPrefix(names, "~")
			for name := range strings.FieldsSeq(names) {
				apply(name, !without)
			}
		}
	}
	return allowed
}
