//go:build integration

package manual

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sequins/test/process"
)

// TestBuilding runs the commands of the page on finished blocks, beside a node that serves what they build.
func TestBuilding(t *testing.T) {
	jobs, source := t.TempDir(), t.TempDir()
	example := filepath.Join(process.Root(), "docs", "example", "words", "2026-01-31")
	if err := os.CopyFS(filepath.Join(jobs, "words", "2026-01-31"), os.DirFS(example)); err != nil {
		t.Fatal(err)
	}
	n := process.Start(t, process.Config{Source: source, Store: filepath.Join(t.TempDir(), "store"), Extra: "refresh_period = \"300ms\"\n"})
	here := strings.NewReplacer("/data/jobs/", jobs+"/", "/srv/sequins", source, "/etc/sequins.conf", n.Conf)
	text := page(t, "BUILD.md")
	served := []string{"2026-01-31", "2026-02-01", "2026-02-02"} // by the builds
	for _, m := range regexp.MustCompile("(?m)^sequins .* /.*$").FindAllString(text, -1) {
		if strings.Contains(m, "hdfs://") {
			continue
		}
		runIt(t, n, here.Replace(m))
		if strings.HasPrefix(m, "sequins build ") {
			n.WaitCurrent(t, "words", served[0])
			served = served[1:]
		}
	}
	if len(served) > 0 {
		t.Errorf("nothing builds %q", served)
	}
	checkJobs(t, n, text, jobs, source)
}

// checkJobs runs the last step of the script and of the DAG, with directories in place of HDFS.
func checkJobs(t *testing.T, n *process.Node, text, jobs, source string) {
	t.Helper()
	joined := strings.ReplaceAll(text, "\"\n    \"", "")
	found := regexp.MustCompile(`sequins build --force [^"\n]* hdfs://namenode/sequins/words/[^"\n]*`).FindAllString(joined, -1)
	if len(found) != 2 {
		t.Fatalf("the jobs run %q", found)
	}
	for i, command := range found {
		day := []string{"2026-03-01", "2026-03-02"}[i]
		command = strings.NewReplacer("sequins/words/2026-01-31", "sequins/words/"+day, "{{ ds }} hdfs", "2026-01-31 hdfs").Replace(command)
		command = strings.NewReplacer("hdfs://namenode/jobs", jobs, "hdfs://namenode/sequins", source, "{{ ds }}", day, "/etc/sequins.conf", n.Conf).Replace(command)
		runIt(t, n, command)
		n.WaitCurrent(t, "words", day)
	}
}
