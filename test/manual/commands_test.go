//go:build integration

package manual

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// ofTheSystem are commands of the machine that sequins runs on, which no test runs: they need an installed service, a
// disk of its own or Docker, or are about to install something. What sequins has to do with them is tested: the unit by test/packaging,
// what is in the log, and openssl, by test/alerts.
var ofTheSystem = regexp.MustCompile(`^(systemctl|journalctl|iostat|smartctl|apt|openssl|docker) |^cat /sys/`)

// ofRollingBack are the commands that write into the source.
var ofRollingBack = regexp.MustCompile(`^sequins (rollback|pin|unpin|approve|refresh|diff)( |$)`)

// Every command of the manual is run here, except two kinds: slow ones of the tests and benchmarks, for which
// the files that they name must exist, and commands of the system.
func TestCommands(t *testing.T) {
	c, n := example(t)
	here := strings.NewReplacer("node1:9599", n.Addr, "node2:9599", n.Addr, "localhost:9599", n.Addr, "NODE:9599", n.Addr, "/var/lib/sequins", c.Store, "/etc/sequins.conf", n.Conf, "COMMAND", "status",
		"verify DIR", "verify "+c.Store, "check-config FILE", "check-config "+n.Conf, "FILE", filepath.Join(c.Source, "words", "2026-01-31", "part-r-00001"))
	seen := map[string]bool{}
	for _, name := range pages(t) {
		text, err := os.ReadFile(filepath.Join(process.Root(), name))
		expect.NoError(t, err)
		for _, command := range Commands(string(text)) {
			if seen[command] || name == "CHANGELOG.md" {
				continue
			}
			seen[command] = true
			switch words := strings.Fields(command); {
			case ofTheSystem.MatchString(command):
			case ofRollingBack.MatchString(command): // TestRollingBack, TestBadMorning
			case words[0] == "helm": // by package chart
			case words[0] == "kubectl": // by package chart, but for what it runs in a pod
				if _, inPod, found := strings.Cut(command, " -- /usr/bin/"); found {
					inPod, _, _ = strings.Cut(inPod, " < ")
					runIt(t, n, strings.Replace(inPod, "--token-file -", "", 1))
				}
			case command == "sequins demo" || command == "go run ./cmd/sequins demo": // TestDemo
			case command == "sequins top" || command == "sequins plan" || command == "sequins build" || command == "sequins verify" || command == "sequins load-worker": // are mentioned
				runIt(t, n, command+" --help")
			case words[0] == "sequins" || words[0] == "curl":
				runIt(t, n, here.Replace(command))
			case words[0] == "make":
				run(t, process.Root(), "make", append([]string{"-n"}, words[1:]...)...)
			case words[0] == "go" && words[1] == "doc":
				run(t, process.Root(), "go", words[1:]...)
			case words[0] == "go" && words[1] == "test":
				goTestIsThere(t, command)
			default:
				t.Errorf("%s: nothing runs %q", name, command)
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d commands", len(seen))
	}
}

// Blocks of sh are where a test runs them.
func TestBlocksOfCommands(t *testing.T) {
	for _, name := range pages(t) {
		text, err := os.ReadFile(filepath.Join(process.Root(), name))
		expect.NoError(t, err)
		run := []string{"README.md", "docs/CLUSTER.md", "docs/QUICKSTART.md", "docs/DATA.md", "docs/SECURITY.md"} // TestReadme, TestQuickStart, TestBuilding, TestTLS and TestTokens
		if strings.Contains(string(text), "```sh\n") && !slices.Contains(run, name) {
			t.Errorf("nothing runs the commands of %s", name)
		}
	}
	run := chapter(t, "SECURITY.md", "TLS") + chapter(t, "SECURITY.md", "Tokens")
	if strings.Count(page(t, "SECURITY.md"), "```sh\n") != strings.Count(run, "```sh\n") {
		t.Error("nothing runs the commands of SECURITY.md that are not in the chapters on TLS and tokens")
	}
}

// example starts a node that serves the example.
func example(t *testing.T) (process.Config, *process.Node) {
	t.Helper()
	c := process.Config{Source: filepath.Join(process.Root(), "docs", "example"), Store: filepath.Join(t.TempDir(), "store")}
	source, err := filepath.Abs(c.Source)
	expect.NoError(t, err)
	c.Source = source
	n := process.Serve(t, c, "words", "2026-01-31")
	n.WaitLog(t, "partitions=4 files=4 partitioner=hadoop aligned=true") // a job's own files, as the README says
	return c, n
}

// runIt runs a command next to a node, with the configuration of that node. The command must succeed
// and print something.
func runIt(t *testing.T, n *process.Node, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.Deadline)
	defer cancel()
	var out expect.Output
	bin := t.TempDir()
	expect.NoError(t, os.Symlink(process.Binary(t), filepath.Join(bin, "sequins")))
	cmd := exec.CommandContext(ctx, "bash", "-c", "exec "+command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Dir(n.Conf), &out, &out
	cmd.Env = append(os.Environ(), "SEQUINS_SETTLE=0s", "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil || out.String() == "" {
		t.Errorf("%s: %v\n%s", command, err, &out)
	}
}

// goTestIsThere holds that a command that runs tests or benchmarks names some: their package has functions of that name.
func goTestIsThere(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(command)
	dirs := []string{process.Root(), filepath.Join(process.Root(), "bench")}
	for i, w := range words {
		var function string
		switch {
		case w == "-bench":
			function = "func Benchmark\\w*" + words[i+1]
		case w == "-run" && regexp.MustCompile(`^\w+$`).MatchString(words[i+1]):
			function = "func Test\\w*" + strings.TrimPrefix(words[i+1], "Test")
		default:
			continue
		}
		for _, p := range words {
			if strings.HasPrefix(p, "./") && !declared(t, dirs, p, function) {
				t.Errorf("%s: %s has no %s", command, p, function)
			}
		}
	}
}

func declared(t *testing.T, dirs []string, pkg, function string) bool {
	t.Helper()
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, pkg, "*_test.go"))
		for _, file := range files {
			text, err := os.ReadFile(file)
			expect.NoError(t, err)
			if regexp.MustCompile(function).Match(text) {
				return true
			}
		}
	}
	return false
}
