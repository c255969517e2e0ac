package single

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/test/harness"
	"sequins/test/process"
)

var mutations = flag.Int("mutations", 16, "how many mutated files of each format go through a node")

// mutants are the files that are mutated. Their formats have checksums over the values, so that what is served must be
// right; the others are held to be answered or in ERROR.
var mutants = []struct {
	fixture string
	checked bool
}{
	{"text-block-default", true},
	{"bytes-record-snappy", false},
	{"avro-snappy", true},
	{"parquet-snappy", true},
	{"parquet-zstd", true},
	{"sparkey-snappy", false},
}

// The bounds of the processes, in bytes: a load's is configured, and what a node that serves next to nothing may take.
const (
	loadLimit = 640 << 20
	nodeLimit = 400 << 20
)

// TestMutatedFiles loads files with flipped bits, cut off, or with other lengths in them: another db is answered all the
// time, each version is right or in ERROR, and no process takes more memory than it may.
func TestMutatedFiles(t *testing.T) {
	source, c := newNode(t)
	c.Extra = `refresh_period = "1s"` // versions that fail are tried again at each
	const lanes = 8
	c.Sections = fmt.Sprintf("[load]\nmemory = \"64MiB\"\nmemory_limit = %d\n", loadLimit)
	for lane := range lanes {
		for _, m := range mutants {
			f := harness.FixtureByName(t, m.fixture)
			if f.Meta.KeyField != "" {
				c.Sections += fmt.Sprintf("[db.%s]\nkey = %q\nvalue = %q\n", mutantDB(m.fixture, lane), f.Meta.KeyField, f.Meta.ValueField)
			}
		}
	}
	writeVersion(t, source, "good", "1", 2, 100, numbered("1"))
	n := process.Start(t, c)
	n.WaitCurrent(t, "good", "1")
	stop := watchOver(t, n)
	for _, m := range mutants {
		t.Run(m.fixture, func(t *testing.T) {
			active := 0
			for i := 0; i < *mutations; i += lanes {
				active += loadMutants(t, n, source, m.fixture, m.checked, i, min(lanes, *mutations-i))
			}
			t.Logf("%s: of %d files %d were served, the others are in ERROR", m.fixture, *mutations, active)
		})
	}
	if peak := stop(); peak > nodeLimit {
		t.Errorf("the node took %d MiB", peak>>20)
	}
}

func mutantDB(fixture string, lane int) string { return fmt.Sprintf("%s-%d", fixture, lane) }

// watchOver asks for a key of the good db until stop, which returns the node's peak of memory.
func watchOver(t *testing.T, n *process.Node) (stop func() int64) {
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		c := n.Client()
		defer c.Close()
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
			start := time.Now()
			if r, err := c.Get("/good/key-000042"); err != nil || r.Code != 200 || string(r.Body) != "1/42" {
				t.Errorf("the good db: %v, %+v", err, r)
				return
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("the good db was answered after %v", d)
			}
		}
	})
	return func() int64 {
		close(done)
		watching.Wait()
		return peakMemory(t, n.PID())
	}
}

// peakMemory is the most that a process had in memory, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// loadMutants loads count mutated files side by side, from the seed first on, and returns how many are served.
func loadMutants(t *testing.T, n *process.Node, source, fixture string, checked bool, first, count int) (active int) {
	t.Helper()
	f := harness.FixtureByName(t, fixture)
	version := fmt.Sprintf("%08d", first+1)
	for lane := range count {
		writeMutant(t, filepath.Join(harness.FixturesDir(t), fixture, f.Meta.Version), filepath.Join(source, mutantDB(fixture, lane)), version, uint64(first+lane))
	}
	for lane := range count {
		db := mutantDB(fixture, lane)
		var v process.VersionState
		n.WaitFor(t, db+" has been tried", func() bool {
			v = n.Health(t)[db][version]
			return v.Current || v.State == "ERROR"
		})
		if v.Error != "" && strings.Contains(v.Error, "load process") {
			t.Logf("%s, seed %d: %s", fixture, first+lane, v.Error)
		}
		if v.Current {
			active++
			if checked {
				checkMutant(t, n, f, db, version, first+lane)
			}
		} else {
			removeAll(t, filepath.Join(source, db, version))
		}
	}
	return active
}

// writeMutant copies a version of a fixture with one of its files mutated.
func writeMutant(t *testing.T, from, db, version string, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 13))
	tmp := filepath.Join(db, "_"+version)
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	var data []string
	for _, e := range entries {
		copyFile(t, filepath.Join(from, e.Name()), filepath.Join(tmp, e.Name()), -1)
		if !strings.HasPrefix(e.Name(), "_") && !strings.HasPrefix(e.Name(), ".") {
			data = append(data, filepath.Join(tmp, e.Name()))
		}
	}
	path := data[rnd.IntN(len(data))]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, mutate(rnd, b), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(db, version)); err != nil {
		t.Fatal(err)
	}
}

// mutate damages a file: up to eight bits are flipped, or it is cut off, or up to four numbers in it become others.
func mutate(rnd *rand.Rand, b []byte) []byte {
	if len(b) < 16 {
		return b
	}
	switch rnd.IntN(4) {
	case 0:
		return b[:rnd.IntN(len(b))]
	case 1:
		for range 1 + rnd.IntN(8) {
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
	default:
		extremes := []uint64{0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1}
		for range 1 + rnd.IntN(4) {
			var number [10]byte
			v := extremes[rnd.IntN(len(extremes))]
			width := 1 + rnd.IntN(8)
			switch rnd.IntN(3) {
			case 0:
				binary.BigEndian.PutUint64(number[:], v<<(64-8*width))
			case 1:
				binary.LittleEndian.PutUint64(number[:], v)
			default:
				width = binary.PutUvarint(number[:], v)
			}
			at := rnd.IntN(len(b))
			if rnd.IntN(2) == 0 { // headers and footers have the lengths
				at = min(rnd.IntN(200), len(b)-1)
				if rnd.IntN(2) == 0 {
					at = len(b) - 1 - at
				}
			}
			copy(b[at:], number[:width])
		}
	}
	return b
}

// checkMutant fails if a key has another value than the file's writer gave it. Keys may be missing: a file can be cut off
// between two records, and the name of a file says nothing of how many it has.
func checkMutant(t *testing.T, n *process.Node, f harness.Fixture, db, version string, seed int) {
	t.Helper()
	c := n.Client()
	defer c.Close()
	for key, r := range f.Final(t) {
		if key == "" {
			continue
		}
		resp, err := c.Get(process.Target(db, []byte(key)))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Code == 200 && !r.HasValue(resp.Body) {
			t.Errorf("%s, seed %d: the key %q has the value %.200q", db, seed, key, resp.Body)
			return
		}
		if resp.Code != 200 && resp.Code != 404 {
			t.Errorf("%s, seed %d: the key %q: %d", db, seed, key, resp.Code)
			return
		}
	}
}
