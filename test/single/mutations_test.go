//go:build integration

package single

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

var mutations = flag.Int("mutations", 64, "how many mutated files of each format go through a node")

// A mutant is a fixture that is mutated.
type mutant struct {
	fixture string
	checked bool // its format has checksums over the values, so served values must be right: see covered
}

// mutants are the fixtures of each format.
var mutants = map[string][]mutant{
	"sequencefile": {
		{"text-block-default", true}, {"bytes-block-gzip", true}, {"text-block-bzip2", true}, {"bytes-block-zstandard", false},
		{"text-block-lz4", false}, {"bytes-record-snappy", false}, {"text-record-default", true}, {"bytes-none", false},
	},
	"avro":    {{"avro-snappy", true}, {"avro-null", false}, {"avro-deflate", false}, {"avro-bzip2", true}, {"avro-zstandard", false}},
	"parquet": {{"parquet-snappy", true}, {"parquet-zstd", true}, {"parquet-gzip", true}, {"parquet-lz4-raw", true}, {"parquet-uncompressed", true}},
	"sparkey": {{"sparkey-none", false}, {"sparkey-snappy", false}, {"sparkey-zstd", false}, {"sparkey-deletes-snappy", false}},
}

// Memory limits of the processes in bytes: the configured one of a load, and one for a node that serves very little.
const (
	loadLimit = 640 << 20
	nodeLimit = 400 << 20
)

// lanes is how many mutated files are loaded by one refresh, each by a db of its own.
const lanes = 40

// TestMutatedFiles loads files with flipped bits, cut off, or with other lengths in them: another db is answered all the
// time, each version is right or in ERROR, and no process takes more memory than it may.
func TestMutatedFiles(t *testing.T) {
	t.Parallel()
	for _, format := range slices.Sorted(maps.Keys(mutants)) {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			m := newMutation(t, mutants[format])
			stop := watchOver(t, m.node)
			for i := 0; i < *mutations; i += lanes {
				m.batch(i, min(lanes, *mutations-i))
			}
			serving, loading := stop()
			t.Logf("of %d files %d were served, %d had an error, %d of these ended their process; the node took %d MiB at most, a load %d MiB",
				*mutations, m.active, m.failed, m.died, serving>>20, loading>>20)
			if m.active+m.failed != *mutations {
				t.Error("some were neither")
			}
			if serving > nodeLimit {
				t.Errorf("the node took %d MiB", serving>>20)
			}
			if loading > loadLimit {
				t.Errorf("a load took %d MiB", loading>>20)
			}
		})
	}
}

// A mutation is a node that loads mutated files.
type mutation struct {
	t      *testing.T
	source string
	node   *process.Node
	lanes  []mutatedDB

	active, failed, died int // versions: served, with an error, and those of them whose process ended
}

// A mutatedDB is the db of one lane.
type mutatedDB struct {
	mutant
	name    string
	fixture harness.Fixture
	records map[string]harness.Record
	served  string // the version that is current, "" if none is
	covered bool   // the newest version is damaged only where checksums of its format detect it
}

func newMutation(t *testing.T, of []mutant) *mutation {
	source, c := newNode(t)
	c.Extra = "refresh_period = \"0s\"\nsettle = \"0s\"\nmax_parallel_loads = 4" // a refresh is a signal
	c.Sections = fmt.Sprintf("[load]\nmemory = \"64MiB\"\nmemory_limit = %d\n", loadLimit)
	m := &mutation{t: t, source: source}
	fixtures := make(map[string]mutatedDB)
	for _, f := range of {
		db := mutatedDB{mutant: f, fixture: harness.FixtureByName(t, f.fixture)}
		db.records = db.fixture.Final(t)
		fixtures[f.fixture] = db
	}
	for lane := range lanes {
		db := fixtures[of[lane%len(of)].fixture]
		db.name = fmt.Sprintf("%s-%d", db.mutant.fixture, lane)
		if key := db.fixture.Meta.KeyField; key != "" {
			c.Sections += fmt.Sprintf("[db.%s]\nkey = %q\nvalue = %q\n", db.name, key, db.fixture.Meta.ValueField)
		}
		m.lanes = append(m.lanes, db)
	}
	writeVersion(t, source, "good", "1", 2, 100, numbered("1"))
	m.node = process.Start(t, c)
	m.node.WaitCurrent(t, "good", "1")
	return m
}

// batch loads count mutated files, with seeds from first, and removes them except those that are served.
func (m *mutation) batch(first, count int) {
	m.t.Helper()
	version := fmt.Sprintf("%08d", first+1)
	for lane := range count {
		db := &m.lanes[lane]
		db.covered = writeMutant(m.t, db.fixture.Dir, filepath.Join(m.source, db.name), version, uint64(first+lane))
	}
	m.node.Signal(m.t, syscall.SIGHUP)
	waiting := make(map[int]bool)
	for lane := range count {
		waiting[lane] = true
	}
	m.node.WaitFor(m.t, "all have been tried", func() bool {
		health := m.node.Health(m.t)
		for lane := range waiting {
			if v := health[m.lanes[lane].name][version]; v.Current || v.State == "ERROR" {
				delete(waiting, lane)
				m.ended(&m.lanes[lane], version, v, first+lane)
			}
		}
		return len(waiting) == 0
	})
}

// ended takes note of how the load of a mutated file has ended.
func (m *mutation) ended(db *mutatedDB, version string, v process.VersionState, seed int) {
	m.t.Helper()
	old := version
	if v.Current {
		m.active++
		m.check(db, seed)
		old, db.served = db.served, version
	} else {
		m.failed++
		if strings.Contains(v.Error, "load process") {
			m.died++
			m.t.Logf("%s, seed %d: %.400s", db.name, seed, v.Error)
		}
	}
	if old != "" {
		expect.NoError(m.t, os.RemoveAll(filepath.Join(m.source, db.name, old)))
	}
}

// check fails if a key has another value than the file's writer gave it, where the format can tell. Keys may be missing:
// a file can be cut off between two records, and the name of a file says nothing of how many it has.
func (m *mutation) check(db *mutatedDB, seed int) {
	m.t.Helper()
	c := m.node.Client()
	defer c.Close()
	for key, r := range db.records {
		if key == "" {
			continue
		}
		resp, err := c.Get(process.Target(db.name, []byte(key)))
		expect.NoError(m.t, err)
		if resp.Code != 200 && resp.Code != 404 {
			m.t.Errorf("%s, seed %d: the key %q: %d", db.name, seed, key, resp.Code)
			return
		}
		if db.checked && db.covered && resp.Code == 200 && !r.HasValue(resp.Body) {
			m.t.Errorf("%s, seed %d: the key %q has the value %.200q", db.name, seed, key, resp.Body)
			return
		}
	}
}

// watchOver asks for a key of the good db, and looks at the load processes, until stop, which returns the most memory
// that the node and that one of these took, in bytes.
func watchOver(t *testing.T, n *process.Node) (stop func() (node, load int64)) {
	done := make(chan struct{})
	var watching sync.WaitGroup
	var load int64
	watching.Go(func() {
		c := n.Client()
		defer c.Close()
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
			start := time.Now()
			if r, err := c.Get("/good/key-000042"); err != nil || r.Code != 200 || string(r.Body) != "1/42" {
				t.Errorf("the good db: %v, %+v", err, r)
				return
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("the good db was answered after %v", d)
			}
			for _, pid := range childrenOf(t, n.PID()) {
				load = max(load, peakMemory(pid))
			}
		}
	})
	return func() (int64, int64) {
		close(done)
		watching.Wait()
		return peakMemory(n.PID()), load
	}
}

// childrenOf returns the processes that another has started and not waited for.
func childrenOf(t *testing.T, pid int) (pids []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	expect.NoError(t, err)
	for _, f := range files {
		list, err := os.ReadFile(f)
		if err == nil { // else the thread is gone
			pids = append(pids, strings.Fields(string(list))...)
		}
	}
	return pids
}

// peakMemory is the most that a process has had in memory, in bytes; 0 if it has ended.
func peakMemory[PID int | string](pid PID) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%v/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// writeMutant copies a version of a fixture with one of its files mutated, and reports whether the parts without a
// checksum are unchanged.
func writeMutant(t *testing.T, from, db, version string, seed uint64) (covered bool) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 13))
	tmp := filepath.Join(db, "_"+version)
	expect.NoError(t, os.MkdirAll(tmp, 0o755))
	entries, err := os.ReadDir(from)
	expect.NoError(t, err)
	var data []string
	for _, e := range entries {
		copyFile(t, filepath.Join(from, e.Name()), filepath.Join(tmp, e.Name()), -1)
		if ignored := strings.HasSuffix(e.Name(), ".spi.sz"); !ignored && !strings.HasPrefix(e.Name(), "_") && !strings.HasPrefix(e.Name(), ".") {
			data = append(data, filepath.Join(tmp, e.Name()))
		}
	}
	path := data[rnd.IntN(len(data))]
	b, err := os.ReadFile(path)
	expect.NoError(t, err)
	header, footer := unchecked(b)
	b = mutate(rnd, b)
	expect.NoError(t, os.WriteFile(path, b, 0o644))
	expect.NoError(t, os.Rename(tmp, filepath.Join(db, version)))
	return bytes.HasPrefix(b, header) && bytes.HasSuffix(b, footer)
}

// unchecked returns a copy of the header of an Avro file, or of the footer of a Parquet file. No checksum protects the
// schema in it, and with it the names and types in what is served.
func unchecked(b []byte) (header, footer []byte) {
	switch {
	case bytes.HasPrefix(b, []byte("Obj\x01")):
		const sync = 16 // the length of the marker that ends the header and each block
		header = b[:bytes.Index(b, b[len(b)-sync:])+sync]
	case bytes.HasPrefix(b, []byte("PAR1")):
		const tail = 8 // a length and PAR1
		footer = b[len(b)-tail-int(binary.LittleEndian.Uint32(b[len(b)-tail:])):]
	}
	return bytes.Clone(header), bytes.Clone(footer)
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
