package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sequins/test/once"
)

// Java returns a command that runs a Java source file with what the program is built with: Hadoop, Avro and parquet-mr.
func Java(ctx context.Context, file string, args ...string) (*exec.Cmd, error) {
	jars, err := ClassPath("harness")
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, "java", append([]string{Options(), "-cp", jars, file}, args...)...), nil
}

// Tool returns a command that runs a class of Hadoop's command line. conf is a HADOOP_CONF_DIR.
func Tool(ctx context.Context, conf, class string, args ...string) (*exec.Cmd, error) {
	jars, err := ClassPath("harness")
	if err != nil {
		return nil, err
	}
	java := []string{Options(), "-cp", conf + string(os.PathListSeparator) + jars, class}
	return exec.CommandContext(ctx, "java", append(java, args...)...), nil
}

// Options is the argument of java by which it takes the options that all its programs have here.
func Options() string { return "@" + filepath.Join(testdata(), "java.options") }

// ClassPath builds the program in a directory of testdata, and returns the jars that it is built with.
func ClassPath(program string) (string, error) {
	dir := filepath.Join(testdata(), program)
	if err := build(dir); err != nil {
		return "", err
	}
	jars, err := os.ReadFile(filepath.Join(dir, "target", "cp.txt"))
	return strings.TrimSpace(string(jars)), err
}

// build compiles the Java program in dir, unless dir/target was compiled from the same sources. It holds a lock, since
// test packages run in parallel.
func build(dir string) error {
	target := filepath.Join(dir, "target")
	unlock, err := once.Lock(filepath.Join(target, "build.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	want, err := once.Sum(filepath.Join(dir, "src"), filepath.Join(dir, "pom.xml")) // a program that is made of jars has no src
	if err != nil {
		return err
	}
	stamp := filepath.Join(target, "stamp")
	if got, err := os.ReadFile(stamp); err == nil && string(got) == want && classPathIsWhole(target) {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(target, "classes")); err != nil { // also removes classes whose source was deleted
		return err
	}
	if err := maven(dir); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(want), 0o644)
}

func maven(dir string) error {
	cmd := exec.Command("mvn", "-B", "-ntp", "-q", "-Pnative", "compile")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "MAVEN_OPTS="+Options())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn compile in %s: %w\n%s", dir, err, lastLines(out, 30))
	}
	return nil
}

// classPathIsWhole reports whether the jars still exist: Maven's repository may have been cleaned.
func classPathIsWhole(target string) bool {
	b, err := os.ReadFile(filepath.Join(target, "cp.txt"))
	if err != nil {
		return false
	}
	for _, jar := range strings.Split(strings.TrimSpace(string(b)), string(os.PathListSeparator)) {
		if _, err := os.Stat(jar); err != nil {
			return false
		}
	}
	return true
}

func lastLines(b []byte, n int) []byte {
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}
