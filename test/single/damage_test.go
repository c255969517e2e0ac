//go:build integration

package single

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/shard"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/process"
)

// big gives values of which a few hundred make a block that is mapped.
func big(version string) func(i int) (key, value string) {
	return func(i int) (string, string) {
		return fmt.Sprintf("key-%06d", i), fmt.Sprintf("%s/%d/%s", version, i, strings.Repeat("v", 900))
	}
}

// cut makes block p of version 1 of db shorter.
func cut(t *testing.T, c process.Config, db string, p int, length func(size int64) int64) {
	t.Helper()
	path := filepath.Join(contentDir(c.Store, db, "1"), fmt.Sprintf("%05d.block", p))
	st, err := os.Stat(path)
	expect.NoError(t, err)
	expect.NoError(t, os.Truncate(path, length(st.Size())))
}

// cuts are lengths that a block is cut to, a partition each.
var cuts = []func(size int64) int64{
	func(int64) int64 { return 0 },
	func(int64) int64 { return 4096 },
	func(int64) int64 { return 8192 },
	func(size int64) int64 { return size / 2 },
	func(size int64) int64 { return size/2&^4095 + 100 },
	func(size int64) int64 { return size - 700 }, // in the filter
	func(size int64) int64 { return size - 76 },
	func(size int64) int64 { return size - 1 },
}

// readCut asks for every key. One of db cut may fail, but is never absent or another value; those of db whole are right.
// It returns how many failed.
func readCut(t *testing.T, n *process.Node, keys int) (failed int) {
	t.Helper()
	client := n.Client()
	defer client.Close()
	for i := range keys {
		key, value := big("1")(i)
		for _, db := range []string{"whole", "cut"} {
			r, err := client.Get("/" + db + "/" + key)
			switch {
			case err != nil:
				t.Fatalf("GET /%s/%s: %v", db, key, err)
			case r.Code == 200 && string(r.Body) == value:
			case db == "cut" && r.Code >= 500:
				failed++
			default:
				t.Fatalf("GET /%s/%s: %d, %.100s", db, key, r.Code, r.Body)
			}
		}
	}
	return failed
}

// TestTruncatedBlocks cuts off blocks that are being served, and then, while the node is stopped, once more: each is loaded
// again, and all else is answered meanwhile.
func TestTruncatedBlocks(t *testing.T) {
	t.Parallel()
	const keys = 200 * 8
	source, c := newNode(t)
	for _, db := range []string{"cut", "whole"} {
		writeVersion(t, source, db, "1", len(cuts), keys, big("1"))
	}
	c.Sections = "[storage]\ncompression = \"none\"\n"
	n := process.Serve(t, c, "cut", "1")
	n.WaitCurrent(t, "whole", "1")
	if failed := readCut(t, n, keys); failed > 0 {
		t.Fatalf("%d of %d keys failed before anything was cut", failed, keys)
	}
	for p, length := range cuts {
		cut(t, c, "cut", p, length)
	}
	readCut(t, n, keys) // finds the damage
	mended := func() bool {
		aside, err := filepath.Glob(filepath.Join(c.Store, "data", "cut", "1", "*", "*.corrupt"))
		there, lerr := filepath.Glob(filepath.Join(c.Store, "data", "cut", "1", "*", "*.block")) // what is set aside may be read still
		if err != nil || lerr != nil {
			t.Fatal(err, lerr)
		}
		return len(aside) == len(cuts) && len(there) == len(cuts) && readCut(t, n, keys) == 0
	}
	n.WaitFor(t, "all blocks are loaded again", mended)
	if code := n.Stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for p, length := range cuts {
		cut(t, c, "cut", p, length)
	}
	n = process.Serve(t, c, "cut", "1")
	n.WaitFor(t, "all blocks are loaded again after a start", func() bool { return readCut(t, n, keys) == 0 })
	if n.Exited() {
		t.Error("the process has ended")
	}
}

// small writes the block of each partition of a version of keys k0, k1, ….
func small(t *testing.T, dir string, partitions, keys int, partitioner shard.Partitioner) {
	t.Helper()
	all := make([][]string, partitions)
	for i := range keys {
		key := fmt.Sprintf("k%06d", i)
		p := partitioner.Partition([]byte(key), partitions)
		all[p] = append(all[p], key)
	}
	for p, keys := range all {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%05d.block", p)))
		expect.NoError(t, err)
		w, err := blocks.NewWriter(f, blocks.WriterOptions{Partition: p, Partitions: partitions})
		expect.NoError(t, err)
		for _, key := range keys {
			expect.NoError(t, w.Add([]byte(key), []byte("value of "+key)))
		}
		if _, err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		expect.NoError(t, f.Close())
	}
}

// TestManySmallPartitions serves 20,000 partitions, which were loaded before a restart, from a process that may open
// 10,000 files.
func TestManySmallPartitions(t *testing.T) {
	t.Parallel()
	const dbs, partitions, keys = 20, 1000, 5000
	partitioner, err := shard.ParsePartitioner("string")
	expect.NoError(t, err)
	_, c := newNode(t)
	c.Source += "-that-is-away" // it is served all the same
	c.Prefix = []string{"sh", "-c", `ulimit -n 10000; exec "$@"`, "sh"}
	local, err := store.Open(c.Store)
	expect.NoError(t, err)
	made := t.TempDir()
	small(t, made, partitions, keys, partitioner)
	for i := range dbs {
		db := fmt.Sprintf("db%02d", i)
		files := make([]store.ManifestFile, partitions)
		for p := range files {
			files[p] = store.ManifestFile{Name: fmt.Sprintf("part-%05d", p), Size: 1}
		}
		dir, err := local.Create(db, store.Manifest{Version: "1", Input: content.Sum(db), Format: "sequencefile", Partitions: partitions, Partitioner: "string",
			Files: files, LastModified: time.Unix(1, 0)})
		expect.NoError(t, err)
		for p := range partitions {
			expect.NoError(t, os.Link(filepath.Join(made, filepath.Base(dir.BlockPath(p))), dir.BlockPath(p)))
		}
		expect.NoError(t, local.SetState(db, store.State{Served: dir.Manifest().Content()}))
	}
	expect.NoError(t, local.Close())
	n := process.Start(t, c)
	for i := range dbs {
		n.WaitCurrent(t, fmt.Sprintf("db%02d", i), "1")
	}
	client := n.Client()
	defer client.Close()
	for i := range keys {
		db, key := fmt.Sprintf("db%02d", i%dbs), fmt.Sprintf("k%06d", i)
		if r, err := client.Get("/" + db + "/" + key); err != nil || r.Code != 200 || string(r.Body) != "value of "+key {
			t.Fatalf("GET /%s/%s: %+v, %v", db, key, r, err)
		}
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.PID()))
	if err != nil || len(open) > 6_000 {
		t.Errorf("%d descriptors are open, %v", len(open), err)
	}
}

// TestSharesOfDescriptors opens all blocks and as many connections as there may be in a process that may open few files:
// enough is left to accept connections and to load.
func TestSharesOfDescriptors(t *testing.T) {
	t.Parallel()
	const partitions, limit = 150, 400
	source, c := newNode(t)
	c.Prefix = []string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, limit), "sh"}
	writeVersion(t, source, "db", "1", partitions, 200*partitions, big("1"))
	n := process.Serve(t, c, "db", "1")
	client := n.Client()
	defer client.Close()
	for i := range 2000 {
		key, value := big("1")(i * 7)
		if r, err := client.Get("/db/" + key); err != nil || r.Code != 200 || string(r.Body) != value {
			t.Fatalf("GET %s: %+v, %v", key, r, err)
		}
	}
	var idle []net.Conn
	for range limit {
		conn, err := net.DialTimeout("tcp", n.Addr, time.Minute)
		expect.NoError(t, err)
		idle = append(idle, conn)
	}
	n.WaitLog(t, "too many connections")
	writeVersion(t, source, "other", "1", 2, 100, numbered("1"))
	n.Signal(t, syscall.SIGHUP)
	n.WaitLog(t, "other")
	for _, conn := range idle {
		conn.Close()
	}
	n.WaitCurrent(t, "other", "1")
	if log := n.Log(); strings.Contains(log, "too many open files") {
		t.Error("too many open files")
	}
}
