//go:build integration

package single

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

// startWithGood starts a node that serves version 1 of db, so that each fault of version 2 can be
// seen to leave it alone.
func startWithGood(t *testing.T) (source string, n *process.Node) {
	t.Helper()
	source, c := newNode(t)
	writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
	n = process.Serve(t, c, "db", "1")
	return source, n
}

// TestBadFiles gives version 2 a truncated, a damaged and an alien file, an empty file and mixed
// formats: ERROR that says what and where, version 1 stays, and 2 is served once it is mended.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	fixture := filepath.Join(harness.FixturesDir(t), "text-block-default")
	good, err := filepath.Glob(filepath.Join(fixture, "*", "part-*"))
	if err != nil || len(good) == 0 {
		t.Fatal(good, err)
	}
	sparkey, err := filepath.Glob(filepath.Join(harness.FixturesDir(t), "sparkey-none", "*", "*.spl"))
	if err != nil || len(sparkey) == 0 {
		t.Fatal(sparkey, err)
	}
	size := func() int {
		st, err := os.Stat(good[0])
		expect.NoError(t, err)
		return int(st.Size())
	}()
	tests := []struct {
		name string
		make func(dir string)
		want []string
	}{
		{"truncated", func(dir string) { copyFile(t, good[0], filepath.Join(dir, "part-r-00000"), size-5) }, []string{"part-r-00000", "offset"}},
		{"damaged", func(dir string) {
			path := filepath.Join(dir, "part-r-00000")
			copyFile(t, good[0], path, -1)
			b, err := os.ReadFile(path)
			expect.NoError(t, err)
			b[len(b)-30] ^= 0x55
			expect.NoError(t, os.WriteFile(path, b, 0o644))
		}, []string{"part-r-00000", "offset"}},
		{"alien", func(dir string) {
			copyFile(t, filepath.Join(harness.FixturesDir(t), "..", "..", "go.mod"), filepath.Join(dir, "part-r-00000"), -1)
		}, []string{"part-r-00000"}},
		{"zero bytes", func(dir string) { copyFile(t, good[0], filepath.Join(dir, "part-r-00000"), 0) }, []string{"there is no record in any of its files"}},
		{"mixed", func(dir string) {
			copyFile(t, good[0], filepath.Join(dir, "part-r-00000"), -1)
			copyFile(t, sparkey[0], filepath.Join(dir, "part-00001.spl"), -1)
		}, []string{"part-r-00000", "part-00001.spl"}},
		{"empty directory", func(dir string) {
			expect.NoError(t, os.MkdirAll(dir, 0o755))
		}, []string{"no data files"}},
		{"no records", func(dir string) {
			db := filepath.Dir(dir)
			writeVersion(t, filepath.Dir(db), filepath.Base(db), filepath.Base(dir), 3, 0, numbered("2"))
		}, []string{"no record in any of its files"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			source, n := startWithGood(t)
			tmp := filepath.Join(source, "db", "_2")
			tt.make(tmp)
			expect.NoError(t, os.Rename(tmp, filepath.Join(source, "db", "2")))
			wantText(t, waitError(t, n, "db", "2"), tt.want...)
			n.Expect(t, "/db/key-000042", 200, "1", "1/42")
			if !n.Health(t)["db"]["1"].Current {
				t.Error("version 1 is not current any more")
			}
			expect.NoError(t, os.RemoveAll(filepath.Join(source, "db", "2")))
			writeVersion(t, source, "db", "2", 2, 100, numbered("2"))
			n.WaitCurrent(t, "db", "2")
			n.Expect(t, "/db/key-000042", 200, "2", "2/42")
		})
	}
}

// TestEmptyVersionAllowed: with allow_empty, a version without records is served, and one without files if it has _SUCCESS.
func TestEmptyVersionAllowed(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Sections += "[db.db]\nallow_empty = true\n"
	writeVersion(t, source, "db", "1", 0, 0, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	n.Expect(t, "/db/anything", 404, "1", "")
	writeVersion(t, source, "db", "2", 3, 0, numbered("2"))
	n.WaitCurrent(t, "db", "2")
	n.Expect(t, "/db/anything", 404, "2", "")
}

// TestOlderVersionWhileNewestIsBad: a version in ERROR that leaves the node with nothing to serve
// does not leave it idle.
func TestOlderVersionWhileNewestIsBad(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	writeVersion(t, source, "db", "1", 1, 100, numbered("1"))
	copyFile(t, filepath.Join(process.Root(), "go.mod"), filepath.Join(source, "db", "2", "part-00000"), -1)
	n := process.Serve(t, c, "db", "1")
	waitError(t, n, "db", "2")
	n.Expect(t, "/db/key-000007", 200, "1", "1/7")
}

// TestSourceUnreachable moves the source away: the node keeps serving, the log and the metrics show
// since when the source is missing, and new versions are found when it is back.
func TestSourceUnreachable(t *testing.T) {
	t.Parallel()
	source, n := startWithGood(t)
	expect.NoError(t, os.Rename(source, source+".away"))
	n.WaitFor(t, "metrics tell of it", func() bool {
		for line := range strings.Lines(n.Metrics(t)) {
			if strings.HasPrefix(line, "sequins_source_unreachable_since_timestamp_seconds ") && !strings.HasSuffix(line, " 0\n") {
				return true
			}
		}
		return false
	})
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
	expect.NoError(t, os.Rename(source+".away", source))
	writeVersion(t, source, "db", "2", 2, 100, numbered("2"))
	n.WaitCurrent(t, "db", "2")
	wantText(t, n.Log(), "source")
}

// TestStartWithSourceThatHangs: the versions in the store are served at once although the source accepts connections
// and never answers. The first listing ends after 15 seconds, which distinguishes a start that waits for it from one
// that does not.
func TestStartWithSourceThatHangs(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	n.Stop(t)
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer mute.Close()
	c.Source = "s3://bucket/"
	c.Sections = fmt.Sprintf("[s3]\nendpoint = %q\npath_style = true\nregion = \"r\"\naccess_key_id = \"k\"\nsecret_access_key = \"s\"\n", "http://"+mute.Addr().String())
	n = process.Start(t, c)
	n.WaitFor(t, "it serves", func() bool { return n.Get(t, "/db/key-000042").Code == 200 })
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
	if r := n.Get(t, "/readyz"); r.Code != 503 {
		t.Errorf("ready before the source has had its time: %d %s", r.Code, r.Body)
	}
	if strings.Contains(n.Log(), "cannot be listed") {
		t.Error("it waited for the source")
	}
	if r := n.Get(t, "/new/key"); r.Code != 503 {
		t.Errorf("a db that the source may have: %d %s", r.Code, r.Body)
	}
	n.WaitFor(t, "it is ready", func() bool { return n.Get(t, "/readyz").Code == 200 })
}

var rounds = flag.Int("rounds", 12, "how often TestKillDuringLoads kills the process")

// TestKillDuringLoads kills the process at random moments of loads: each start serves a complete
// version and keeps finished blocks, and no stray file is left.
func TestKillDuringLoads(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra = `refresh_period = "20ms"`
	rng := rand.New(rand.NewPCG(11, 11))
	writeVersion(t, source, "db", "v000", 6, 3000, numbered("v000"))
	served := ""
	for round := range *rounds {
		n := process.Start(t, c)
		version := fmt.Sprintf("v%03d", round+1)
		n.WaitFor(t, "something is served", func() bool {
			r, err := n.TryGet("/db/key-000001")
			return err == nil && r.Code == 200
		})
		writeVersion(t, source, "db", version, 6, 3000, numbered(version))
		stop := rng.IntN(40)
		c := n.Client()
		for range stop { // each a moment of the load
			r, err := c.Get("/db/key-000123")
			expect.NoError(t, err)
			if r.Code != 200 || r.Version() < served || string(r.Body) != r.Version()+"/123" {
				t.Fatalf("round %d: %d of version %s after %s: %s", round, r.Code, r.Version(), served, r.Body)
			}
			served = r.Version()
			n.Health(t)
		}
		n.Kill()
	}
	n := process.Start(t, c)
	last := fmt.Sprintf("v%03d", *rounds)
	n.WaitCurrent(t, "db", last)
	for i := range 3000 {
		key, value := numbered(last)(i)
		n.Expect(t, "/db/"+key, 200, last, value)
	}
	var stray []string
	t.Cleanup(func() { t.Logf("left on disk beside %s: %q", last, stray) })
	n.WaitFor(t, "only the last version is on disk", func() bool {
		stray = slices.DeleteFunc(storeFiles(t, c.Store), func(f string) bool {
			return f == "db/STATE.json" || strings.HasPrefix(f, "db/"+last+"/") && !strings.HasSuffix(f, ".tmp")
		})
		return len(stray) == 0
	})
}

// TestRestartKeepsFinishedPartitions kills a throttled load after some partitions are published:
// their files are not written again.
func TestRestartKeepsFinishedPartitions(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra += "\nthrottle_loads = \"1ms\"\npartitioner = \"string\"\nmax_parallel_loads = 1"
	writeAligned(t, filepath.Join(source, "db", "1"), 8, 4000)
	n := process.Start(t, c)
	var kept []string
	n.WaitFor(t, "some partitions are there", func() bool {
		kept = nil
		for _, f := range storeFiles(t, c.Store) {
			if strings.HasSuffix(f, ".block") {
				kept = append(kept, f)
			}
		}
		return len(kept) > 0
	})
	n.Kill()
	before := map[string]os.FileInfo{}
	for _, f := range kept {
		st, err := os.Stat(filepath.Join(c.Store, "data", f))
		expect.NoError(t, err)
		before[f] = st
	}
	c.Extra = strings.Replace(c.Extra, `throttle_loads = "1ms"`, "", 1)
	n = process.Serve(t, c, "db", "1")
	for f, st := range before {
		now, err := os.Stat(filepath.Join(c.Store, "data", f))
		if err != nil || !os.SameFile(st, now) {
			t.Errorf("%s was loaded again (%v)", f, err)
		}
	}
	for i := range 4000 {
		n.Expect(t, fmt.Sprintf("/db/key-%06d", i), 200, "1", fmt.Sprintf("1/%d", i))
	}
}
