//go:build integration

package single

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
	"sequins/test/sequencefiles"
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

// mountTmpfs mounts a small file system for a store until the test ends.
func mountTmpfs(t *testing.T, path, size string) {
	t.Helper()
	expect.NoError(t, os.MkdirAll(path, 0o755))
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("mounting a small tmpfs (this test must run as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// TestDiskFull loads into a small tmpfs: ERROR with the reason, nothing of the version left on
// disk, the old one up, and success after room is made.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	mountTmpfs(t, c.Store, "64m") // much more than the load writes between two looks at the disk, however busy the machine is
	ballast := filepath.Join(c.Store, "ballast")
	writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	expect.NoError(t, os.WriteFile(ballast, make([]byte, 62<<20), 0o644))
	writeVersion(t, source, "db", "2", 2, 5000, random(500))
	wantText(t, waitError(t, n, "db", "2"), "no space left on device")
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
	n.WaitFor(t, "partial files are removed", func() bool {
		return !strings.Contains(strings.Join(storeFiles(t, c.Store), " "), ".tmp")
	})
	expect.NoError(t, os.Remove(ballast))
	n.WaitCurrent(t, "db", "2")
}

// TestRoomIsMade: a version that did not fit is loaded at SIGHUP when room has been made, however often it was tried
// before and whether a load was refused or has filled the disk.
func TestRoomIsMade(t *testing.T) {
	t.Parallel()
	for name, checked := range map[string]string{"refused": "true", "full": "false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, c := newNode(t)
			mountTmpfs(t, c.Store, "64m")
			c.Extra, c.Sections = "", "[load]\ncheck_disk = "+checked+"\n[log]\nlevel = \"debug\"\n"
			ballast := filepath.Join(c.Store, "ballast")
			writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
			n := process.Serve(t, c, "db", "1")
			expect.NoError(t, os.WriteFile(ballast, make([]byte, 62<<20), 0o644))
			writeVersion(t, source, "db", "2", 2, 5000, random(500))
			n.Signal(t, syscall.SIGHUP)
			failed := regexp.MustCompile(`a version that failed will be tried again" db=db version=2 in=(\S+)`)
			attempts := 0
			n.WaitFor(t, "it has failed so often that the next attempt is far away", func() bool {
				all := failed.FindAllStringSubmatch(n.Log(), -1)
				if len(all) == attempts {
					return false
				}
				attempts = len(all)
				if next, err := time.ParseDuration(all[attempts-1][1]); err != nil || next > 40*time.Second {
					return err == nil
				}
				n.Signal(t, syscall.SIGHUP)
				return false
			})
			expect.NoError(t, os.Remove(ballast))
			n.Signal(t, syscall.SIGHUP)
			begin := time.Now()
			n.WaitCurrent(t, "db", "2")
			t.Logf("it is served %s after there is room; %d attempts", time.Since(begin), attempts)
		})
	}
}

// TestMinFreeDisk: a small file that expands fills the disk up to min_free_disk and no further, once. Another database
// is loaded beside it, and the version is loaded when there is room.
func TestMinFreeDisk(t *testing.T) {
	t.Parallel()
	const size, reserve = 48 << 20, 16 << 20
	source, c := newNode(t)
	mountTmpfs(t, c.Store, fmt.Sprint(size))
	c.Sections = fmt.Sprintf("[load]\nmin_free_disk = \"%dMiB\"\n[storage]\ncompression = \"none\"\n[log]\nlevel = \"debug\"\n", reserve>>20)
	writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	free := func() int64 {
		var disk syscall.Statfs_t
		if err := syscall.Statfs(c.Store, &disk); err != nil {
			t.Error(err)
		}
		return int64(disk.Bavail) * disk.Bsize
	}
	least, measured := int64(size), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(measured)
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			least = min(least, free())
		}
	}()
	dir := filepath.Join(source, "db", "_2")
	expect.NoError(t, os.MkdirAll(dir, 0o755))
	small := filepath.Join(dir, "part-r-00000")
	writeCompressed(t, small, 75<<20)
	if info, err := os.Stat(small); err != nil || info.Size() > 1<<20 {
		t.Fatalf("the file: %v, %v", info, err)
	}
	expect.NoError(t, os.Rename(dir, filepath.Join(source, "db", "2")))
	wantText(t, waitError(t, n, "db", "2"), "the load has been ended after it had written", "16.0 MiB for load.min_free_disk", "no space left on device")
	writeVersion(t, source, "other", "1", 2, 100, numbered("1"))
	n.WaitCurrent(t, "other", "1")
	n.WaitFor(t, "it was tried again", func() bool { return strings.Count(n.Log(), "version failed again") > 1 })
	stop()
	<-measured
	t.Logf("%d MiB were free", least>>20)
	if least < reserve {
		t.Errorf("%d bytes were free, %d are to stay", least, reserve)
	}
	if got := strings.Count(n.Log(), "has been ended after"); got != 1 {
		t.Errorf("the disk was filled %d times", got)
	}
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
	expect.NoError(t, syscall.Mount("tmpfs", c.Store, "tmpfs", syscall.MS_REMOUNT, fmt.Sprint("size=", 8*size)))
	n.WaitCurrent(t, "db", "2")
}

// writeCompressed writes a compressed file of a version whose values have some bytes in all.
func writeCompressed(t *testing.T, path string, bytes int) {
	t.Helper()
	sequencefiles.WriteFile(t, path, sequencefiles.WriterOptions{Compression: sequencefiles.Block}, func(add func(key, value string)) {
		value := strings.Repeat("\x00", 64<<10)
		for i := range bytes / len(value) {
			add(fmt.Sprintf("key-%06d", i), value)
		}
	})

}

// random returns records with random values of a size.
func random(size int) func(int) (string, string) {
	rng := rand.New(rand.NewPCG(1, 1))
	return func(i int) (string, string) {
		v := make([]byte, size)
		for j := range v {
			v[j] = byte(rng.Uint32())
		}
		return fmt.Sprintf("key-%06d", i), string(v)
	}
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

// TestStartWithoutSource: complete versions on disk are served although the source cannot be read.
func TestStartWithoutSource(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	writeVersion(t, source, "db", "1", 2, 100, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	n.Stop(t)
	expect.NoError(t, os.Rename(source, source+".away"))
	n = process.Serve(t, c, "db", "1")
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
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

// TestSecondProcess: the store belongs to one process, an address to one listener.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	writeVersion(t, source, "db", "1", 1, 10, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	second := process.Launch(t, c)
	if code := second.WaitExit(t); code != 1 {
		t.Errorf("a second process on the same store: exit code %d", code)
	}
	wantText(t, second.Log(), c.Store, fmt.Sprint(n.PID()))
	oneError(t, second.Log())

	other := c
	other.Store, other.Addr = filepath.Join(t.TempDir(), "store"), n.Addr
	second = process.Launch(t, other)
	if code := second.WaitExit(t); code != 1 {
		t.Errorf("a port in use: exit code %d", code)
	}
	wantText(t, second.Log(), n.Addr)
	oneError(t, second.Log())

	other = c
	other.Extra = "refresh_perod = \"1s\""
	second = process.Launch(t, other)
	if code := second.WaitExit(t); code == 0 {
		t.Error("a misspelt key: exit code 0")
	}
	wantText(t, second.Log(), "refresh_perod", "refresh_period")
	n.Expect(t, "/db/key-000003", 200, "1", "1/3")
}

// oneError wants the reason in the last line, and no stack of a panic.
func oneError(t *testing.T, log string) {
	t.Helper()
	if strings.Contains(log, "goroutine ") || strings.Contains(log, "panic") {
		t.Errorf("not one line: %s", log)
	}
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

// TestBadRequests sends what no client should.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	_, n := startWithGood(t)
	long := strings.Repeat("a", 65<<10)
	huge := strings.Repeat("b", 300<<10)
	for _, tt := range []struct {
		name, method, target, header string
		codes                        []int
	}{
		{"bad escape", "GET", "/db/%zz", "", []int{400}},
		{"cut escape", "GET", "/db/a%2", "", []int{400}},
		{"long key", "GET", "/db/" + long, "", []int{414}},
		{"huge target", "GET", "/db/" + huge, "", []int{414, 431}},
		{"huge header", "GET", "/db/a", "X-A: " + huge + "\r\n", []int{431}},
		{"post", "POST", "/db/a", "Content-Length: 0\r\n", []int{405}},
		{"delete", "DELETE", "/db/a", "", []int{405}},
		{"no db", "GET", "/nosuch/a", "", []int{404}},
		{"proxy of another version", "GET", "/db/key-000001?proxy=7", "", []int{501}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := n.Client()
			defer c.Close()
			r, err := c.Do(tt.method, tt.target, tt.header)
			expect.NoError(t, err)
			ok := false
			for _, code := range tt.codes {
				ok = ok || r.Code == code
			}
			if !ok {
				t.Errorf("%d: %.200q, want %v", r.Code, r.Body, tt.codes)
			}
			if bytes.Count(r.Body, []byte("\n")) > 1 {
				t.Errorf("not one line: %q", r.Body)
			}
		})
	}
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
}

// TestSlowClients: a client that never ends its request gets an error and is cut off, and one that
// never reads its answer is cut off; other clients are served meanwhile.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	writeVersion(t, source, "db", "1", 1, 1, func(int) (string, string) { return "large", strings.Repeat("x", 64<<20) })
	n := process.Serve(t, c, "db", "1")
	half := dial(t, n, "GET /db/large HTT")
	deaf := dial(t, n, "GET /db/large HTTP/1.1\r\nHost: a\r\n\r\n")
	if r := n.Get(t, "/db/absent"); r.Code != 404 {
		t.Errorf("while two clients are slow: %d", r.Code)
	}
	b, err := io.ReadAll(half)
	if err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 408 ")) {
		t.Errorf("half a request is answered with %.100q, %v", b, err)
	}
	n.WaitFor(t, "the node gives up on a client that does not read", func() bool {
		return strings.Contains(n.Metrics(t), `sequins_requests_in_flight 0`)
	})
	if b, err := io.ReadAll(deaf); err == nil && len(b) >= 64<<20 {
		t.Error("a client that did not read got everything all the same")
	}
}

func dial(t *testing.T, n *process.Node, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", n.Addr)
	expect.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	expect.NoError(t, conn.SetDeadline(time.Now().Add(process.Deadline)))
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	return conn
}
