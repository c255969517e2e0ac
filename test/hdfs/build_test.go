//go:build integration

package hdfs

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"sequins/test/process"
)

// testBuild: a MapReduce job writes its output, sequins build makes finished blocks of it in HDFS, and a running node serves
// every record of them.
func testBuild(t *testing.T, c *cluster) {
	const records = 5000
	d := c.newDir()
	d.Mkdir(t, "source")
	jobs, source := "hdfs://"+c.namenode+d.root+"/jobs", "hdfs://"+c.namenode+d.root+"/source"
	n := process.Start(t, configure(t, source, fmt.Sprintf("user = %q", superuser)))
	c.Do(t, fmt.Sprintf("job out=%s/db/1 format=seq type=text compression=BLOCK codec=SnappyCodec records=%d reducers=3 tag=first-", jobs, records))
	d.Put(t, "source/db/1/part-00007.block", []byte("of a build that was killed"))
	for _, flags := range [][]string{nil, {"--force"}, {"--force"}} {
		args := append([]string{"build", "--config", n.Conf}, flags...)
		out, err := exec.Command(process.Binary(t), append(args, jobs+"/db/1", source+"/db/1")...).CombinedOutput()
		switch {
		case flags == nil && (err == nil || !strings.Contains(string(out), "use --force")):
			t.Errorf("without --force: %v, %s", err, out)
		case flags != nil && err != nil && !strings.Contains(string(out), "versions must not change"):
			t.Fatalf("%v\n%s", err, out)
		}
	}
	n.WaitCurrent(t, "db", "1")
	client := n.Client()
	defer client.Close()
	for i := range records {
		answer, err := client.Get(fmt.Sprintf("/db/key-%09d", i))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint("first-", i, "-"); answer.Code != 200 || !strings.HasPrefix(string(answer.Body), want) {
			t.Fatalf("key %d: %d: %.60q, want %q", i, answer.Code, answer.Body, want)
		}
	}
}
