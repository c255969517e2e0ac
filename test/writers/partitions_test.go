//go:build integration

package writers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

// rows is the number of rows of each DataFrame of partitions.scala.
const rows = 3000

// TestPartitions: three nodes without replicas each read a third of what Spark has partitioned by key, and serve all of it.
func TestPartitions(t *testing.T) {
	t.Parallel()
	dir, source := t.TempDir(), sparkDir(t, "partitions")
	if files := list(t, filepath.Join(source, "strings", "1")); len(files) != 7 {
		t.Fatalf("Spark has written %q: this shows nothing", files)
	}
	java := harness.Start(t)
	zookeeper := java.Do(t, "zk start n=1 id=spark")["connect"]
	var nodes []*process.Node
	for i := range 3 {
		c := process.Config{Source: source, Store: filepath.Join(dir, fmt.Sprint("store", i))}
		c.Sections = fmt.Sprintf("[sharding]\nenabled = true\ncluster_name = \"spark\"\nadvertised_hostname = \"127.0.0.1\"\nreplication = 1\nmin_nodes = 3\n"+
			"shard_id = \"%d\"\ntime_to_converge = \"500ms\"\nproxy_timeout = \"30s\"\n[zk]\nservers = [%q]\n", i, zookeeper)
		for _, db := range []string{"strings", "ints", "longs", "buckets"} {
			c.Sections += fmt.Sprintf("[db.%s]\nkey = \"key\"\nvalue = \"value\"\n", db)
		}
		nodes = append(nodes, process.Launch(t, c))
	}
	for db, want := range map[string]string{
		"strings": "partitions=8 files=7 partitioner=murmur3 aligned=true",
		"ints":    "partitions=6 files=6 partitioner=murmur3-int aligned=true",
		"longs":   "partitions=6 files=6 partitioner=murmur3-long aligned=true",
		"buckets": "partitions=5 files=15 partitioner=murmur3 aligned=true",
	} {
		total := float64(sizes(t, filepath.Join(source, db, "1")))
		for _, n := range nodes {
			n.WaitCurrent(t, db, "1")
			n.WaitFor(t, db+" is loaded", func() bool { return strings.Contains(n.Log(), `msg="load finished" node=`+n.Addr+" db="+db) })
			if !strings.Contains(n.Log(), " db="+db+" version=1 "+want) {
				t.Errorf("%s was not loaded by %s", db, want)
			}
			// Three of eight partitions are three eighths; of each file a page of 1 MB is read twice, as the keys are not sorted.
			if read := bytesRead(t, n, db); db == "strings" && read > total*0.65 {
				t.Errorf("%s: read %.0f of %.0f bytes of %s", n.Addr, read, total, db)
			}
		}
		checkRows(t, nodes, db)
	}
}

// checkRows reads all keys, from the nodes in turn.
func checkRows(t *testing.T, nodes []*process.Node, db string) {
	t.Helper()
	found := 0
	for i := range rows {
		key := fmt.Sprintf("%%D0%%BA%%D0%%BB%%D1%%8E%%D1%%87-%d", i)
		switch db {
		case "ints":
			key = fmt.Sprint(int32(i*1000003 - 2000000000))
		case "longs":
			key = fmt.Sprint(i*1000000000003 - 3000000000000000)
		}
		r := nodes[i%len(nodes)].Get(t, "/"+db+"/"+key)
		switch {
		case r.Code == 404 && db == "strings":
		case r.Code != 200 || !strings.HasPrefix(string(r.Body), fmt.Sprintf("%d ", i)):
			t.Fatalf("%s/%s: %d %.100q", db, key, r.Code, r.Body)
		default:
			found++
		}
	}
	if found < rows*3/4 {
		t.Errorf("%s has %d keys", db, found)
	}
}

func list(t *testing.T, dir string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	expect.NoError(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "part-") {
			files = append(files, e.Name())
		}
	}
	return files
}

func sizes(t *testing.T, dir string) (total int64) {
	t.Helper()
	for _, name := range list(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		expect.NoError(t, err)
		total += info.Size()
	}
	return total
}

// bytesRead returns what a node has read from the source for a db.
func bytesRead(t *testing.T, n *process.Node, db string) float64 {
	t.Helper()
	for line := range strings.Lines(n.Metrics(t)) {
		if number, ok := strings.CutPrefix(line, fmt.Sprintf("sequins_load_bytes_total{db=%q} ", db)); ok {
			read, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			expect.NoError(t, err)
			return read
		}
	}
	t.Fatalf("%s has no metric of bytes read of %s", n.Addr, db)
	return 0
}
