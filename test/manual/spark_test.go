//go:build integration

package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/spark"
)

// The jobs of the page on preparing data run in Spark's shell, unchanged except for the output directory, and their
// output is served with the configuration on that page.
func TestSparkOfTheManual(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	var job, conf string
	for _, b := range Blocks(page(t, "DATA.md")) {
		switch {
		case b.Language == "scala":
			job += strings.NewReplacer("hdfs://namenode:8020/sequins", "file://"+source, "hdfs://namenode:8020", "file://"+dir).Replace(b.Text)
		case b.Language == "toml" && strings.Contains(b.Text, "[db.meanings]"):
			conf = b.Text
		}
	}
	if job == "" || conf == "" {
		t.Fatalf("the chapter has no job or no configuration: %q, %q", job, conf)
	}
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "input.txt"), []byte("to be or not to be\nthat is the question\n"), 0o644))
	spark.Run(t, dir, job)

	n := process.Serve(t, process.Config{Source: source, Store: filepath.Join(dir, "store"), Extra: "require_success_file = true\n" + conf}, "meanings", "2026-02-01")
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
