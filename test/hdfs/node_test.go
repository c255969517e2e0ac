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

// configure describes a node whose source is a directory of HDFS.
func configure(t *testing.T, url, hdfs string) process.Config {
	t.Helper()
	return process.Config{
		Source:   url,
		Store:    filepath.Join(t.TempDir(), "store"),
		Extra:    "refresh_period = \"100ms\"\nrequire_success_file = true",
		Sections: "[hdfs]\n" + hdfs,
	}
}

// testNode: a MapReduce job writes its output, and a running node serves every record of it without a signal, and then
// the next version.
func testNode(t *testing.T, c *cluster) {
	const records, reducers = 1000, 3
	d := c.newDir()
	d.Mkdir(t, ".")
	url := "hdfs://" + c.namenode + d.root
	t.Setenv("HADOOP_USER_NAME", superuser)
	n := process.Start(t, configure(t, url, ""))
	for i, tag := range []string{"first-", "second-"} {
		version := fmt.Sprint(i + 1)
		c.Do(t, fmt.Sprintf("job out=%s/db/%s format=seq type=text compression=BLOCK codec=SnappyCodec records=%d reducers=%d tag=%s",
			url, version, records, reducers, tag))
		n.WaitCurrent(t, "db", version)
		client := n.Client()
		for i := range records {
			answer, err := client.Get(fmt.Sprintf("/db/key-%09d", i))
			expect.NoError(t, err)
			if want := fmt.Sprint(tag, i, "-"); answer.Code != 200 || answer.Version() != version || !strings.HasPrefix(string(answer.Body), want) {
				t.Fatalf("key %d: %d of version %s: %.60q, want %s and %q", i, answer.Code, answer.Version(), answer.Body, version, want)
			}
		}
		client.Close()
	}
}
