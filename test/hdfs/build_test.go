//go:build integration

package hdfs

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// testBuild: a MapReduce job writes its output, sequins build makes finished blocks of it, and a running node serves every
// record of their copy in HDFS.
func testBuild(t *testing.T, c *cluster) {
	const records = 1000
	d := c.newDir()
	d.Mkdir(t, "source")
	jobs, source := "hdfs://"+c.namenode+d.root+"/jobs", "hdfs://"+c.namenode+d.root+"/source"
	n := process.Start(t, configure(t, source, ""))
	c.Do(t, fmt.Sprintf("job out=%s/db/1 format=seq type=text compression=BLOCK codec=SnappyCodec records=%d reducers=3 tag=first-", jobs, records))
	built := filepath.Join(t.TempDir(), "db", "1")
	process.OutputOf(t, process.Binary(t), "build", "--config", n.Conf, jobs+"/db/1", built)
	d.Mkdir(t, "source/db")
	c.Do(t, fmt.Sprintf("dfs put src=%s dst=%s/db/1", built, source))
	n.WaitCurrent(t, "db", "1")
	client := n.Client()
	defer client.Close()
	for i := range records {
		answer, err := client.Get(fmt.Sprintf("/db/key-%09d", i))
		expect.NoError(t, err)
		if want := fmt.Sprint("first-", i, "-"); answer.Code != 200 || !strings.HasPrefix(string(answer.Body), want) {
			t.Fatalf("key %d: %d: %.60q, want %q", i, answer.Code, answer.Body, want)
		}
	}
}
