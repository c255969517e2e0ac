//go:build integration

package manual

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

var className = regexp.MustCompile(`(?m)^public class (\w+) `)

// The programs of the page on preparing data compile and run with the real Hadoop, and their output is served.
func TestJavaOfTheManual(t *testing.T) {
	t.Parallel()
	jars, err := harness.ClassPath("harness")
	expect.NoError(t, err)
	dir := t.TempDir()
	classPath := dir + ":" + jars
	var sources []string
	for _, b := range Blocks(page(t, "DATA.md")) {
		if b.Language != "java" {
			continue
		}
		source := filepath.Join(dir, className.FindStringSubmatch(b.Text)[1]+".java")
		expect.NoError(t, os.WriteFile(source, []byte(b.Text), 0o644))
		sources = append(sources, source)
	}
	run(t, dir, "javac", append([]string{"-cp", classPath, "-d", dir}, sources...)...)

	source := filepath.Join(dir, "source")
	run(t, dir, "java", "-cp", classPath, "WriteWords", filepath.Join(source, "meanings", "1"))
	input := filepath.Join(dir, "input.txt")
	expect.NoError(t, os.WriteFile(input, []byte("to\t2\nbe\t2\nor\t1\nnot\t1\nthat\t1\nis\t1\nthe\t1\nquestion\t1\n"), 0o644))
	run(t, dir, "java", "-cp", classPath, "Publish", input, filepath.Join(source, "counts", "1"))

	n := process.Serve(t, process.Config{Source: source, Store: filepath.Join(dir, "store"), Extra: "require_success_file = false"}, "meanings", "1")
	n.WaitCurrent(t, "counts", "1")
	for target, want := range map[string]string{
		"/meanings/apple": "a fruit", "/meanings/beet": "a root", "/counts/be": "2", "/counts/question": "1", "/counts/that": "1",
	} {
		if r := n.Get(t, target); r.Code != 200 || string(r.Body) != want {
			t.Errorf("%s: %d %q, want %q", target, r.Code, r.Body, want)
		}
	}
	// That the files are read as they are cut is what the chapter promises of this job.
	n.WaitLog(t, "msg=\"load started\" db=counts version=1 partitions=4 files=4 partitioner=hadoop aligned=true")
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, args[len(args)-1], err, out)
	}
}
