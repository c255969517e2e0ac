package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
)

// The tests run nodes as processes of their own: this test binary, which is the program when it finds
// this variable in its environment.
const beSequins = "SEQUINS_TEST_IS_SEQUINS"

func TestMain(m *testing.M) {
	if os.Getenv(beSequins) != "" {
		main()
	}
	os.Exit(m.Run())
}

// command prepares a process of sequins, which is killed when the test ends.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	// The race detector would have every process sleep for a second before it exits.
	cmd.Env = append(os.Environ(), beSequins+"=1", "GORACE=atexit_sleep_ms=0")
	if len(args) > 0 && (strings.HasPrefix(args[0], "-") || args[0] == "build") { // a node, or a build, whose files are there as a whole
		cmd.Env = append(cmd.Env, "SEQUINS_SETTLE=0s")
	}
	cmd.Dir = t.TempDir()
	return cmd
}

// result is what a process that ended left behind.
type result struct {
	code           int
	stdout, stderr string
}

// inProcesses are the commands that wait for signals, or use the streams of their process.
var inProcesses = []string{"build", "completion", "demo", "top"}

// sequins runs a command line: nodes and some commands as a process, all others in this one.
func sequins(t *testing.T, args ...string) result {
	t.Helper()
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || slices.Contains(inProcesses, args[0]) {
		return finish(t, command(t, args...))
	}
	var stdout, stderr bytes.Buffer
	code := run(args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	return begin(t, cmd)()
}

// begin starts a command. The result waits for its end.
func begin(t *testing.T, cmd *exec.Cmd) (wait func() result) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	return func() result {
		t.Helper()
		err := cmd.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatalf("%s: %v", cmd, err)
		}
		return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	}
}

// wants checks an exit code and what was said; stderr must be as many lines as want has, in order, each
// beginning as it says.
func (r result) wants(t *testing.T, code int, want ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", r.code, code, r.stdout, r.stderr)
	}
	lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	if r.stderr == "" {
		lines = nil
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines on stderr, want %d:\n%s", len(lines), len(want), r.stderr)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("stderr line %d is %q, want %q", i+1, line, want[i])
		}
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestHelp(t *testing.T) {
	names := []string{"demo", "status", "versions", "check-config", "build", "verify", "get", "cat", "man", "plan"}
	top := sequins(t, "--help")
	top.wants(t, exitOK)
	for _, want := range append(names, "--config", "--source", "--bind", "--local-store", "--debug-bind", "-b", "-r", "-l", "Exit codes", "SIGHUP") {
		if !strings.Contains(top.stdout, want) {
			t.Errorf("sequins --help does not mention %s", want)
		}
	}
	for _, name := range names {
		r := sequins(t, name, "--help")
		r.wants(t, exitOK)
		if !strings.Contains(r.stdout, "Examples:\n  sequins "+name) || !strings.Contains(r.stdout, "Usage:\n  sequins "+name) {
			t.Errorf("sequins %s --help has no usage or no example:\n%s", name, r.stdout)
		}
		for line := range strings.Lines(r.stdout + top.stdout) {
			if len(strings.TrimSuffix(line, "\n")) > 120 {
				t.Errorf("sequins %s --help has a long line: %s", name, line)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	r := sequins(t, "--version")
	r.wants(t, exitOK)
	if !strings.HasPrefix(r.stdout, "sequins ") || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("printed %q", r.stdout)
	}
}

func TestUsageErrors(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"frobnicate"}, `sequins: there is no command "frobnicate"; see sequins --help`},
		{[]string{"help", "frobnicate"}, `sequins: there is no command "frobnicate"; see sequins help --help`},
		{[]string{"help", "get", "x"}, `sequins: there is no command "x"; see sequins help --help`},
		{[]string{"--frobnicate"}, "sequins: unknown flag: --frobnicate; see sequins --help"},
		{[]string{"--source"}, "sequins: flag needs an argument: --source; see sequins --help"},
		{[]string{"get", "x"}, "sequins: requires at least 2 arg(s), only received 1; see sequins get --help"},
		{[]string{"get", "x", `\q`, "--escaped"}, "sequins: the key is not escaped: "},
		{[]string{"cat"}, "sequins: accepts 1 arg(s), received 0; see sequins cat --help"},
		{[]string{"scan", "--limit", "x", "x"}, `sequins: invalid argument "x" for "--limit" flag`},
		{[]string{"verify"}, "sequins: requires at least 1 arg(s), only received 0; see sequins verify --help"},
		{[]string{"check-config", "a", "b"}, "sequins: accepts at most 1 arg(s), received 2; see sequins check-config --help"},
		{[]string{"demo", "x"}, `sequins: unknown command "x" for "sequins demo"; see sequins demo --help`},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			sequins(t, test.args...).wants(t, exitUsage, test.want)
		})
	}
}

func TestCheckConfig(t *testing.T) {
	dir := t.TempDir()
	good, bad, old := filepath.Join(dir, "good.conf"), filepath.Join(dir, "bad.conf"), filepath.Join(dir, "old.conf")
	writeFile(t, good, `source = "/data"`)
	writeFile(t, bad, "source = \"/data\"\nbind = \"x\"\nsauce = 1\n")
	writeFile(t, old, "source = \"/data\"\nwrite_buffer_size = 1\n")

	r := sequins(t, "check-config", good)
	r.wants(t, exitOK)
	if r.stdout != good+" is good\n" {
		t.Errorf("said %q", r.stdout)
	}
	sequins(t, "check-config", bad).wants(t, exitFailure,
		"sequins: "+bad+":2: bind: ", "sequins: "+bad+":3: sauce: unknown key; did you mean source?")
	sequins(t, "check-config", old).wants(t, exitOK, "warning: "+old+":2: write_buffer_size: is not used")
	sequins(t, "check-config", filepath.Join(dir, "none.conf")).wants(t, exitFailure, "sequins: reading the configuration: open ")

	cmd := command(t, "check-config")
	writeFile(t, filepath.Join(cmd.Dir, "sequins.conf"), "bind = 1")
	finish(t, cmd).wants(t, exitFailure, "sequins: sequins.conf: source: ", "sequins: sequins.conf:1: bind: ")
}
