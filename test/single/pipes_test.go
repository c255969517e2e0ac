//go:build integration

package single

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// replaceByPipe puts a named pipe in the place of the file that a pattern matches.
func replaceByPipe(t *testing.T, pattern string) {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	path := found[0]
	expect.NoError(t, os.Remove(path))
	expect.NoError(t, syscall.Mkfifo(path, 0o600))
}

// stop ends a node by SIGTERM. It must end orderly, not because its time is over.
func stop(t *testing.T, n *process.Node) {
	t.Helper()
	if code := n.Stop(t); code != 0 {
		t.Errorf("the node ended with code %d", code)
	}
}

// TestPipesInTheStore: a pipe in the place of a file of the store is damage like any other. Nothing waits for it, neither at
// the start nor while the node serves, and what it stood for is loaded again.
func TestPipesInTheStore(t *testing.T) {
	t.Parallel()
	const keys = 300
	source, c := newNode(t)
	files := map[string]string{ // by database
		"block":    "1/*/00000.block",
		"manifest": "1/*/MANIFEST.json",
		"state":    "STATE.json",
		"whole":    "",
	}
	for db := range files {
		writeVersion(t, source, db, "1", 3, keys, big("1"))
	}
	all := func(n *process.Node) {
		t.Helper()
		client := n.Client()
		defer client.Close()
		for db := range files {
			n.WaitFor(t, db+" serves all keys", func() bool {
				for i := range keys {
					key, value := big("1")(i)
					r, err := client.Get("/" + db + "/" + key)
					if err != nil || r.Code != 200 || string(r.Body) != value {
						return false
					}
				}
				return true
			})
		}
	}
	n := process.Start(t, c)
	all(n)
	stop(t, n)
	for db, file := range files {
		if file != "" {
			replaceByPipe(t, filepath.Join(c.Store, "data", db, file))
		}
	}
	n = process.Start(t, c)
	all(n)
	for db, file := range files {
		if file != "" {
			replaceByPipe(t, filepath.Join(c.Store, "data", db, file))
		}
	}
	n.Signal(t, syscall.SIGHUP)
	for db := range files {
		writeVersion(t, source, db, "2", 3, keys, big("1"))
	}
	n.Signal(t, syscall.SIGHUP)
	for db := range files {
		n.WaitCurrent(t, db, "2")
	}
	all(n)
	stop(t, n)
}

// A pipe in the place of the lock is an error that says so.
func TestPipeForTheLock(t *testing.T) {
	t.Parallel()
	_, c := newNode(t)
	expect.NoError(t, os.MkdirAll(c.Store, 0o700))
	expect.NoError(t, syscall.Mkfifo(filepath.Join(c.Store, "sequins.lock"), 0o600))
	n := process.Launch(t, c)
	if code := n.WaitExit(t); code == 0 {
		t.Error("it ended without an error")
	}
	wantText(t, n.Log(), "sequins.lock: not a regular file")
}

// TestStopWithHangingReads: requests wait for a file that does not answer when SIGTERM comes. The process exits all the same.
func TestStopWithHangingReads(t *testing.T) {
	t.Parallel()
	const keys = 300
	source, c := newNode(t)
	d := mountDisk(t, c.Store)
	writeVersion(t, source, "hangs", "1", 1, keys, big("1"))
	c.Sections = "[storage]\ncompression = \"none\"\n"
	n := process.Serve(t, c, "hangs", "1")
	d.hang(filepath.Join("data", "hangs"))
	defer d.release()
	asked := askHanging(n, 20, keys)
	n.WaitFor(t, "reads hang", func() bool { return d.hanging() > 0 })
	n.Signal(t, syscall.SIGTERM)
	n.WaitFor(t, "the process exits", n.Exited)
	asked.running.Wait()
	if d.hanging() > 0 {
		t.Error("a process that has ended waits for a file")
	}
}

// TestStartWithHangingFiles: files of one database hang when a node starts. The other database is served, and SIGTERM ends
// the process.
func TestStartWithHangingFiles(t *testing.T) {
	t.Parallel()
	const keys = 300
	source, c := newNode(t)
	d := mountDisk(t, c.Store)
	for _, db := range []string{"hangs", "works"} {
		writeVersion(t, source, db, "1", 1, keys, big("1"))
	}
	n := process.Serve(t, c, "hangs", "1")
	n.WaitCurrent(t, "works", "1")
	stop(t, n)

	d.hang(filepath.Join("data", "hangs"))
	defer d.release()
	n = process.Launch(t, c)
	n.WaitFor(t, "reads hang", func() bool { return d.hanging() > 0 })
	n.WaitCurrent(t, "works", "1")
	answeredAtOnce(t, n, "1", 50)
	writeVersion(t, source, "works", "2", 1, keys, big("2"))
	n.Signal(t, syscall.SIGHUP)
	n.WaitCurrent(t, "works", "2")
	answeredAtOnce(t, n, "2", 50)
	if d.hanging() == 0 {
		t.Error("no read hangs any more: this shows nothing")
	}
	n.Signal(t, syscall.SIGTERM)
	n.WaitFor(t, "the process exits", n.Exited)
	wantText(t, n.Log(), "exiting although something does not end")
}
