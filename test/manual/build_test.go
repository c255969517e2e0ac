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

// checkJobs runs the last step of the script and of the DAG, with directories and cp in place of HDFS and hdfs.
func checkJobs(t *testing.T, n *process.Node, text, jobs, source string) {
	t.Helper()
	text = strings.ReplaceAll(text, "\"\n    \"", "") // the command of the DAG, in pieces
	script := regexp.MustCompile(`(?m)^sequins build .*hdfs://(?:.*\n)+?rm -r .*$`).FindString(text)
	dag := regexp.MustCompile(`bash_command="(.*)"`).FindStringSubmatch(text)
	if script == "" || dag == nil {
		t.Fatalf("the jobs are %q and %q", script, dag)
	}
	for i, command := range []string{strings.ReplaceAll(script, "\n", " && "), dag[1]} {
		day := []string{"2026-03-01", "2026-03-02"}[i]
		if err := os.Rename(filepath.Join(jobs, "words", []string{"2026-01-31", "2026-03-01"}[i]), filepath.Join(jobs, "words", day)); err != nil {
			t.Fatal(err)
		}
		command = strings.NewReplacer("{{ ds }}", day, "2026-01-31", day, "hdfs dfs -put -f", "cp -r", "hdfs://namenode/jobs", jobs, "hdfs://namenode/sequins", source,
			"/data/built", t.TempDir(), "/etc/sequins.conf", n.Conf).Replace(command)
		runIt(t, n, "bash -c '"+command+"'")
		n.WaitCurrent(t, "words", day)
	}
}
