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

	"sequins/test/process"
)

// opened are the packages of Java that Spark looks into, as its own scripts open them.
var opened = []string{
	"java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent",
	"java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar",
}

// Run runs lines of Scala in Spark's shell, with dir as the working directory, and fails the test if one of them fails.
// It writes jars.txt and job.scala into dir.
func Run(t *testing.T, dir, lines string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	classPath := jars(ctx, t, dir)
	job := filepath.Join(dir, "job.scala")
	if err := os.WriteFile(job, []byte(lines+"\nsys.exit(0)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-Xmx1g", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", "-Dspark.master=local[2]", "-Dspark.ui.enabled=false"}
	for _, p := range opened {
		args = append(args, "--add-opens=java.base/"+p+"=ALL-UNNAMED")
	}
	args = append(args, "-cp", classPath, "org.apache.spark.repl.Main", "-usejavacp", "-i", job)
	cmd := exec.CommandContext(ctx, "java", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "SPARK_LOCAL_IP=127.0.0.1")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "error:") || strings.Contains(string(out), "Exception") {
		t.Fatalf("%v\n%s\nprinted\n%s", err, lines, out)
	}
}

// jars returns the class path of Spark.
func jars(ctx context.Context, t *testing.T, dir string) string {
	t.Helper()
	list := filepath.Join(dir, "jars.txt")
	cmd := exec.CommandContext(ctx, "mvn", "-B", "-ntp", "-q", "-f", filepath.Join(process.Root(), "testdata", "spark", "pom.xml"),
		"dependency:build-classpath", "-Dmdep.outputFile="+list)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mvn: %v\n%s", err, out)
	}
	classPath, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(classPath))
}
