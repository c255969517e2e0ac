//go:build integration

package writers

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sequins/test/expect"
	"sequins/test/spark"
)

// sparks is what Spark has written for all tests, in one run: below dir, each job writes into a directory of its name.
var sparks struct {
	sync.Once
	dir string // removed by TestMain
}

// sparkDir returns the directory of a job, after all have run.
func sparkDir(t *testing.T, job string) string {
	t.Helper()
	sparks.Do(func() {
		var err error
		if sparks.dir, err = os.MkdirTemp("", "sequins-writers-"); err != nil {
			t.Fatal(err)
		}
		var lines strings.Builder
		// partitions sends a function to its tasks, and with it what is defined before: nothing that cannot be sent.
		for _, job := range []string{"partitions", "spark", "partitioned", "tables"} {
			text, err := os.ReadFile(job + ".scala")
			expect.NoError(t, err)
			dir := filepath.Join(sparks.dir, job)
			expect.NoError(t, os.Mkdir(dir, 0o755))
			lines.WriteString(strings.ReplaceAll(string(text), "DIR", dir))
		}
		spark.Run(t, sparks.dir, lines.String())
	})
	return filepath.Join(sparks.dir, job)
}
