//go:build integration

package manual

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestBuilding runs the commands of the section on finished blocks, beside a node that serves what they build.
func TestBuilding(t *testing.T) {
	jobs, source := t.TempDir(), t.TempDir()
	example := filepath.Join(process.Root(), "docs", "example", "words", "2026-01-31")
	expect.NoError(t, os.CopyFS(filepath.Join(jobs, "words", "2026-01-31"), os.DirFS(example)))
	n := process.Start(t, process.Config{Source: source, Store: filepath.Join(t.TempDir(), "store"), Extra: "refresh_period = \"300ms\"\n"})
	here := strings.NewReplacer("/data/jobs/", jobs+"/", "/srv/sequins", source, "/etc/sequins.conf", n.Conf)
	text := page(t, "DATA.md")
	served := []string{"2026-01-31", "2026-02-01"} // by the builds
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

// checkJobs runs the last step of a job, with directories and cp in place of HDFS and hdfs. The second day is built and copied twice, as by
// a job that is repeated.
func checkJobs(t *testing.T, n *process.Node, text, jobs, source string) {
	t.Helper()
	script := regexp.MustCompile(`(?m)^rm -rf .*\nsequins build .*hdfs://(?:.*\n)+?rm -r .*$`).FindString(text)
	if script == "" {
		t.Fatal("the page has no script")
	}
	built := t.TempDir()
	for i, day := range []string{"2026-03-01", "2026-03-02"} {
		expect.NoError(t, os.Rename(filepath.Join(jobs, "words", []string{"2026-01-31", "2026-03-01"}[i]), filepath.Join(jobs, "words", day)))
		command := strings.NewReplacer("2026-01-31", day, "hdfs dfs -put -f", "cp -r", "hdfs://namenode/jobs", jobs, "hdfs://namenode/sequins", source,
			"/data/built", built, "/etc/sequins.conf", n.Conf).Replace(strings.ReplaceAll(script, "\n", " && "))
		for range i + 1 {
			runIt(t, n, "bash -c '"+command+"'")
			n.WaitCurrent(t, "words", day)
		}
	}
}
