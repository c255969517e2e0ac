// Package spark runs jobs in the shell of a real Spark, whose jars Maven finds by testdata/spark/pom.xml.
package spark

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/harness"
)

// opened are the packages of Java that Spark looks into, as its own scripts open them.
var opened = []string{
	"java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent",
	"java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar",
}

// timeout bounds a run. Beside other tests and other work, the four jobs of test/writers have taken 13 minutes.
const timeout = 25 * time.Minute

// Run runs lines of Scala in Spark's shell, with dir as the working directory, and fails the test if one of them fails.
// It writes job.scala into dir. The start alone takes ten seconds of a processor: a package should need one run.
func Run(t *testing.T, dir, lines string) {
	t.Helper()
	jars, err := harness.ClassPath("spark")
	expect.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), timeout) // what Maven fetches does not count
	defer cancel()
	job := filepath.Join(dir, "job.scala")
	expect.NoError(t, os.WriteFile(job, []byte(lines+"\nsys.exit(0)\n"), 0o644))
	args := []string{harness.Options(), "-XX:ReservedCodeCacheSize=256m", "-Dspark.master=local[2]", "-Dspark.ui.enabled=false"}
	for _, p := range opened {
		args = append(args, "--add-opens=java.base/"+p+"=ALL-UNNAMED")
	}
	args = append(args, "-cp", jars, "org.apache.spark.repl.Main", "-usejavacp", "-i", job)
	cmd := exec.CommandContext(ctx, "java", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "SPARK_LOCAL_IP=127.0.0.1")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "error:") || strings.Contains(string(out), "Exception") {
		t.Fatalf("%v\n%s\nprinted\n%s", err, lines, out)
	}
}
