package manual

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

// The jobs of the chapter on preparing data run in Spark's own shell, as they stand there but for where they write to,
// and what they write is served with the configuration that stands there, too.
func TestSparkOfTheManual(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	var job, conf string
	for _, b := range blocks(page(t, "DATA.md")) {
		switch {
		case b.language == "scala":
			job += strings.NewReplacer("hdfs://namenode:8020/sequins", "file://"+source, "hdfs://namenode:8020", "file://"+dir).Replace(b.text)
		case b.language == "toml" && strings.Contains(b.text, "[db.meanings]"):
			conf = b.text
		}
	}
	if job == "" || conf == "" {
		t.Fatalf("the chapter has no job or no configuration: %q, %q", job, conf)
	}
	if err := os.WriteFile(filepath.Join(dir, "input.txt"), []byte("to be or not to be\nthat is the question\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	runSpark(t, dir, job)

	n := process.Start(t, process.Config{Source: source, Store: filepath.Join(dir, "store"), Extra: "require_success_file = true\n" + conf})
	n.WaitCurrent(t, "meanings", "2026-01-31")
	n.WaitCurrent(t, "counts", "2026-01-31")
	for target, want := range map[string]string{
		"/meanings/apple": "a fruit", "/meanings/beet": "a root", "/counts/be": "2", "/counts/question": "1", "/counts/that": "1",
	} {
		if r := n.Get(t, target); r.Code != 200 || string(r.Body) != want {
			t.Errorf("%s: %d %q, want %q", target, r.Code, r.Body, want)
		}
	}
	n.WaitFor(t, "the files were read as they are cut", func() bool {
		for line := range strings.Lines(n.Log()) {
			if strings.Contains(line, `msg="load started" db=counts version=2026-01-31 partitions=4 files=4`) && strings.Contains(line, "aligned=true") {
				return true
			}
		}
		return false
	})
}

// runSpark runs lines in Spark's shell.
func runSpark(t *testing.T, dir, lines string) {
	t.Helper()
	jars := filepath.Join(dir, "jars.txt")
	run(t, dir, "mvn", "-B", "-ntp", "-q", "-f", filepath.Join(process.Root(), "testdata", "spark", "pom.xml"),
		"dependency:build-classpath", "-Dmdep.outputFile="+jars)
	classPath, err := os.ReadFile(jars)
	if err != nil {
		t.Fatal(err)
	}
	job := filepath.Join(dir, "job.scala")
	if err := os.WriteFile(job, []byte(lines+"\nsys.exit(0)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-Xmx1g", "-XX:TieredStopAtLevel=1", "-Dspark.master=local[2]", "-Dspark.ui.enabled=false"}
	for _, p := range opened {
		args = append(args, "--add-opens=java.base/"+p+"=ALL-UNNAMED")
	}
	args = append(args, "-cp", strings.TrimSpace(string(classPath)), "org.apache.spark.repl.Main", "-usejavacp", "-i", job)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "java", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "SPARK_LOCAL_IP=127.0.0.1")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "error:") || strings.Contains(string(out), "Exception") {
		t.Fatalf("%v\n%s\nprinted\n%s", err, lines, out)
	}
}
