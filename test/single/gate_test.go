//go:build integration

package single

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// A rule is tried with a version before, one that is just inside of it, and one that is just outside.
type gateRule struct {
	rule            string
	inside, outside func(t *testing.T, source, db, version string)
	reason          string // of the one outside
}

// sized writes a version of n records whose values have size bytes.
func sized(n, size int) func(t *testing.T, source, db, version string) {
	return func(t *testing.T, source, db, version string) {
		writeVersion(t, source, db, version, 2, n, func(i int) (string, string) {
			return fmt.Sprintf("key-%06d", i), strings.Repeat("v", size)
		})
	}
}

// with writes a version of 100 records, one of which is special.
func with(key, value string) func(t *testing.T, source, db, version string) {
	return func(t *testing.T, source, db, version string) {
		writeVersion(t, source, db, version, 2, 100, func(i int) (string, string) {
			if i == 42 {
				return key, value
			}
			return fmt.Sprintf("key-%06d", i), strings.Repeat("v", 10)
		})
	}
}

// replaced writes a version of 100 records with n other keys than the one before.
func replaced(n int) func(t *testing.T, source, db, version string) {
	return func(t *testing.T, source, db, version string) {
		writeVersion(t, source, db, version, 2, 100, func(i int) (string, string) {
			if i < n {
				return fmt.Sprintf("new-%06d", i), "v"
			}
			return fmt.Sprintf("key-%06d", i), "v"
		})
	}
}

// The version before has 100 keys of 10 bytes with values of 10 bytes: 2,000 bytes.
var gateRules = map[string]gateRule{
	"min-records":     {`min_records = 80`, sized(80, 10), sized(79, 10), "min_records: 79 records, at least 80"},
	"max-shrink":      {`max_shrink = 0.29`, sized(71, 10), sized(70, 10), "max_shrink: 70 records instead of 100, 30 % fewer, at most 29 %"},
	"max-shrink-size": {`max_shrink = 0.25`, sized(100, 5), sized(100, 4), "max_shrink: 1,400 bytes instead of 2,000, 30 % fewer, at most 25 %"},
	"max-growth":      {`max_growth = 0.5`, sized(150, 10), sized(151, 10), "max_growth: 151 records instead of 100, 51 % more, at most 50 %"},
	"max-growth-size": {`max_growth = 0.5`, sized(100, 20), sized(100, 21), "max_growth: 3,100 bytes instead of 2,000, 55 % more, at most 50 %"},
	"max-missing":     {`max_missing = 0.03`, replaced(3), replaced(4), "max_missing: 4 of 100 keys of the version that is served are missing, 4 %, at most 3 %"},
	"max-value-size":  {`max_value_size = "1KB"`, with("key-000042", strings.Repeat("x", 1000)), with("key-000042", strings.Repeat("x", 1001)), "max_value_size: the largest value has 1,001 bytes, at most 1,000"},
	"required-key":    {`required_keys = {canary = ""}`, with("canary", ""), with("canari", ""), `required_keys: key "canary" is missing`},
	"required-value":  {`required_keys = {canary = "^[0-9]+$"}`, with("canary", "12"), with("canary", "1x"), `required_keys: the value of key "canary" does not match "^[0-9]+$"`},
	"two-rules":       {"min_records = 90\nmax_shrink = 0.1", sized(90, 10), sized(89, 10), "min_records: 89 records, at least 90; max_shrink: 89 records instead of 100, 11 % fewer, at most 10 %"},
}

// waitHeld waits until a version is held, and returns the line of the log.
func waitHeld(t *testing.T, n *process.Node, db, version string) (line string) {
	t.Helper()
	n.WaitFor(t, db+"/"+version+" is held", func() bool { return n.Health(t)[db][version].State == "HELD" })
	for l := range strings.Lines(n.Log()) {
		if strings.Contains(l, "version held") && strings.Contains(l, "db="+db+" version="+version+" ") {
			line = l
		}
	}
	return line
}

// TestGateRules loads a version just outside of each rule, which is held, and one just inside, which is served; it
// restarts the node in between, by kill -9.
func TestGateRules(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	for db, r := range gateRules {
		c.Sections += fmt.Sprintf("[db.%s.gate]\n%s\n", db, r.rule)
		first := sized(100, 10)
		if strings.HasPrefix(db, "required") {
			first = r.inside
		}
		if db == "max-missing" {
			first = replaced(0)
		}
		first(t, source, db, "1")
	}
	n := process.Start(t, c)
	for db := range gateRules {
		n.WaitCurrent(t, db, "1")
	}
	for db, r := range gateRules {
		r.outside(t, source, db, "2")
	}
	for db, r := range gateRules {
		if line := waitHeld(t, n, db, "2"); !strings.Contains(strings.ReplaceAll(line, `\"`, `"`), r.reason) {
			t.Errorf("%s: %q, want %s", db, line, r.reason)
		}
	}
	n.Kill()
	n.WaitExit(t)
	n = process.Start(t, c)
	for db := range gateRules {
		waitHeld(t, n, db, "2")
		if !n.Health(t)[db]["1"].Current {
			t.Errorf("%s: version 1 is not served after a restart: %v", db, n.Health(t)[db])
		}
	}
	for db, r := range gateRules {
		r.inside(t, source, db, "3")
	}
	for db := range gateRules {
		n.WaitCurrent(t, db, "3")
	}
	n.WaitFor(t, "held versions are removed", func() bool { _, there := n.Health(t)["two-rules"]["2"]; return !there })
}

// TestApprove approves a held version with the command, and follows rules that are changed by SIGHUP.
func TestApprove(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra = `refresh_period = "1h"`
	c.Sections = "[gate]\nmin_records = 100\n"
	writeVersion(t, source, "db", "1", 2, 99, numbered("1"))
	writeVersion(t, source, "other", "1", 2, 99, numbered("1"))
	n := process.Start(t, c)
	waitHeld(t, n, "db", "1")
	waitHeld(t, n, "other", "1")
	if r := n.Get(t, "/db/key-000042"); r.Code != 404 && r.Code != 503 {
		t.Errorf("a key of a held version: %d", r.Code)
	}
	command := exec.Command(process.Binary(t), "approve", "db", "1", "--source", source, "--reason", "fewer customers", "--wait", "--server", n.Addr)
	out, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "serves 1") || !strings.Contains(string(out), `approve = ['1']`) {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
	n.WaitLog(t, "version approved")
	conf, err := os.ReadFile(n.Conf)
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(n.Conf, []byte(strings.Replace(string(conf), "min_records = 100", "min_records = 99", 1)), 0o644))
	n.Signal(t, syscall.SIGHUP)
	n.WaitCurrent(t, "other", "1")
}

// TestLongKeys: records whose key no request can carry are left out up to max_record_errors, and one more fails the load.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Sections = "[gate]\nmax_record_errors = 1\n"
	for db, long := range map[string]int{"one": 1, "two": 2} {
		writeVersion(t, source, db, "1", 2, 100, func(i int) (string, string) {
			if i < long {
				return strings.Repeat("k", 65537), "x"
			}
			return numbered("1")(i)
		})
	}
	n := process.Serve(t, c, "one", "1")
	n.Expect(t, "/one/key-000042", 200, "1", "1/42")
	n.WaitLog(t, "left_out=1")
	if text := waitError(t, n, "two", "1"); !strings.Contains(text, "key of 65537") || !strings.Contains(text, "max_record_errors allows no more") {
		t.Error(text)
	}
}

// TestRollbackThroughTheGate: a rollback leads to the version before, whatever the gate would say of it next to the bad one,
// but not to one that was held.
func TestRollbackThroughTheGate(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra += "\nkeep_versions = 3"
	c.Sections = "[gate]\nmax_shrink = 0.5\nmax_growth = 0.3\n"
	writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	writeVersion(t, source, "db", "2", 2, 200, numbered("2"))
	waitHeld(t, n, "db", "2")
	writeVersion(t, source, "db", "3", 2, 60, numbered("3"))
	n.WaitCurrent(t, "db", "3")
	process.OutputOf(t, process.Binary(t), "rollback", "db", "3", "--source", source, "--server", n.Addr)
	n.WaitLog(t, "version rolled back to")
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
}

// TestRefresh: a node that looks at its source only when it is told to does so at sequins refresh, and follows a rollback
// at once.
func TestRefresh(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra = `refresh_period = "1h"`
	writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	for _, version := range []string{"2", "3"} {
		writeVersion(t, source, "db", version, 2, 100, numbered(version))
		process.OutputOf(t, process.Binary(t), "refresh", "--source", source)
		n.WaitCurrent(t, "db", version)
	}
	process.OutputOf(t, process.Binary(t), "rollback", "db", "3", "--source", source, "--server", n.Addr)
	n.WaitCurrent(t, "db", "2")
}
