//go:build integration

package single

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// damage flips a bit in the first page of a block, in place, as a disk does.
func damage(t *testing.T, path string) os.FileInfo {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	expect.NoError(t, err)
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, 100); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, 100); err != nil {
		t.Fatal(err)
	}
	st, err := f.Stat()
	expect.NoError(t, err)
	return st
}

// blockPath is where a version of one partition lies.
func blockPath(store string) string {
	return filepath.Join(contentDir(store, "db", "1"), "00000.block")
}

// waitReplaced waits until another file than st is under the block's name.
func waitReplaced(t *testing.T, n *process.Node, path string, st os.FileInfo) {
	t.Helper()
	n.WaitFor(t, "the block is loaded again", func() bool {
		now, err := os.Stat(path)
		return err == nil && !os.SameFile(st, now)
	})
}

// TestDamagedBlockIsLoadedAgain damages a block between two runs: the first request that meets the
// damage is refused, never answered wrongly, and the block is loaded again.
func TestDamagedBlockIsLoadedAgain(t *testing.T) {
	t.Parallel()
	const keys = 2000
	source, c := newNode(t)
	writeVersion(t, source, "db", "1", 1, keys, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	n.Kill()
	path := blockPath(c.Store)
	st := damage(t, path)

	n = process.Serve(t, c, "db", "1")
	refused := 0
	for i := range keys {
		switch r := n.Get(t, fmt.Sprintf("/db/key-%06d", i)); {
		case r.Code == 200 && string(r.Body) == fmt.Sprintf("1/%d", i):
		case r.Code == 500:
			refused++
		default:
			t.Fatalf("key %d: %d %q", i, r.Code, r.Body)
		}
	}
	if refused == 0 {
		t.Error("no request has met the damage")
	}
	waitReplaced(t, n, path, st)
	waitAnswered(t, n, keys)
}

// waitAnswered waits until every key is answered, and rightly.
func waitAnswered(t *testing.T, n *process.Node, keys int) {
	t.Helper()
	client := n.Client()
	defer client.Close()
	for i := range keys {
		n.WaitFor(t, fmt.Sprintf("key %d is answered", i), func() bool {
			r, err := client.Get(fmt.Sprintf("/db/key-%06d", i))
			if err == nil && r.Code == 200 && string(r.Body) != fmt.Sprintf("1/%d", i) {
				t.Fatalf("key %d: %q", i, r.Body)
			}
			return err == nil && r.Code == 200
		})
	}
}

// TestScrubFindsDamage damages a block that nobody asks for.
func TestScrubFindsDamage(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra += "\nscrub_period = \"200ms\""
	writeVersion(t, source, "db", "1", 1, 2000, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	path := blockPath(c.Store)
	st := damage(t, path)
	waitReplaced(t, n, path, st)
	wantText(t, n.Log(), "the scrub found a damaged block", path)
	wantText(t, n.Metrics(t), "\nsequins_checksum_failures_total{db=\"db\"} 1\n")
	waitAnswered(t, n, 2000)
}
