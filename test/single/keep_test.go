//go:build integration

package single

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// makeBroken makes versions of db that cannot be loaded: an empty directory and files of no known format.
func makeBroken(t *testing.T, source string, versions ...string) {
	t.Helper()
	for i, v := range versions {
		dir := filepath.Join(source, "db", v)
		if i%2 == 0 {
			copyFile(t, filepath.Join(process.Root(), "go.mod"), filepath.Join(dir, "part-r-00000"), -1)
		}
		expect.NoError(t, os.MkdirAll(dir, 0o755))
		expect.NoError(t, os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644))
	}
}

// expectFirst waits while a node starts, and compares its first answer.
func expectFirst(t *testing.T, n *process.Node, target, version, body string) {
	t.Helper()
	n.WaitFor(t, "it has started", func() bool { return n.Get(t, target).Code != 503 })
	n.Expect(t, target, 200, version, body)
}

// TestRestartsKeepWhatWasServed restarts a node, in order and by kill -9, while three broken versions stand above the one
// that it serves.
func TestRestartsKeepWhatWasServed(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	makeBroken(t, source, "2", "3", "4")
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		for _, v := range []string{"2", "3", "4"} {
			waitError(t, n, "db", v)
		}
		n.Expect(t, "/db/key-000042", 200, "1", "1/42")
		n.Signal(t, s)
		n.WaitExit(t)
		n = process.Start(t, c)
		expectFirst(t, n, "/db/key-000042", "1", "1/42")
	}
	writeVersion(t, source, "db", "5", 2, 100, numbered("5"))
	n.WaitCurrent(t, "db", "5")
}

// TestBrokenNamesDoNotBlockUpgrades has names above every good version that can never be loaded.
func TestBrokenNamesDoNotBlockUpgrades(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	makeBroken(t, source, "archive", "tmp", "w", "x", "y", "zzz")
	writeVersion(t, source, "db", "2026-01-01", 1, 100, numbered("1"))
	n := process.Serve(t, c, "db", "2026-01-01")
	writeVersion(t, source, "db", "2026-01-02", 1, 100, numbered("2"))
	n.WaitCurrent(t, "db", "2026-01-02")
	waitError(t, n, "db", "zzz")
	n.Kill()
	n.WaitExit(t)
	n = process.Start(t, c)
	expectFirst(t, n, "/db/key-000042", "2026-01-02", "2/42")
}

// TestUnmountedSource takes the source away from a running and from a starting node.
func TestUnmountedSource(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra += "\n" + `db_remove_timeout = "1ms"`
	writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	mounted := source + ".mounted"
	expect.NoError(t, os.Rename(source, mounted))
	expect.NoError(t, os.Mkdir(source, 0o755))
	n.WaitLog(t, "lists none of the 1 databases")
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
	n.Stop(t)
	n = process.Start(t, c)
	n.WaitLog(t, "lists none of the 1 databases")
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
	expect.NoError(t, os.Remove(source))
	expect.NoError(t, os.Rename(mounted, source))
	writeVersion(t, source, "db", "2", 2, 100, numbered("2"))
	n.WaitCurrent(t, "db", "2")
}

// TestNoWayBackOverARestart damages a block of the served version while the node is down, and fills its disk, so that this
// version cannot be loaded again, but the one before could: clients never get that one.
func TestNoWayBackOverARestart(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	mountTmpfs(t, c.Store, "24m")
	long := strings.Repeat("2", 2000)
	writeVersion(t, source, "db", "1", 1, 100, numbered("1"))
	writeVersion(t, source, "db", "2", 2, 4000, func(i int) (string, string) {
		key, value := numbered("2")(i)
		return key, value + long
	})
	c.Sections = "[storage]\ncompression = \"none\"\n"
	n := process.Serve(t, c, "db", "2")
	n.Stop(t)
	expect.NoError(t, os.Truncate(filepath.Join(contentDir(c.Store, "db", "2"), "00001.block"), 5000))
	ballast := filepath.Join(c.Store, "ballast")
	expect.NoError(t, os.WriteFile(ballast, make([]byte, 18<<20), 0o644))

	n = process.Start(t, c)
	n.WaitFor(t, "2 cannot be loaded again", func() bool {
		return strings.Contains(n.Health(t)["db"]["2"].Error, "no space left on device")
	})
	good, bad := 0, 0
	for i := range 100 {
		key, _ := numbered("2")(i)
		r := n.Get(t, "/db/"+key)
		switch {
		case r.Code == 200 && r.Version() == "2":
			good++
		case r.Code >= 500:
			bad++
		default:
			t.Fatalf("%s: %d of version %q", key, r.Code, r.Version())
		}
	}
	if good < 20 || bad < 20 {
		t.Errorf("%d keys were answered, and %d were not; one of two partitions is there", good, bad)
	}
	expect.NoError(t, os.Remove(ballast))
	n.WaitFor(t, "all of 2 is there again", func() bool {
		for i := range 100 {
			key, _ := numbered("2")(i)
			if n.Get(t, "/db/"+key).Code != 200 {
				return false
			}
		}
		return true
	})
}
