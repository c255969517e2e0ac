//go:build integration

package harness

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"sequins/input/sequencefile"
	"sequins/input/sparkey"
	"sequins/shard"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
	"sequins/test/sparkeylog"
)

// A real job runs, and its output is read back: every record once, unchanged, in its partition.
func TestJobsAreRead(t *testing.T) {
	h := running(t)
	const records, reducers = 9_000, 3
	for _, c := range []struct{ kind, compression, codec, format string }{
		{"text", "NONE", "DefaultCodec", "seq"},
		{"bytes", "RECORD", "GzipCodec", "seq"},
		{"text", "BLOCK", "SnappyCodec", "seq"},
		{"bytes", "BLOCK", "ZStandardCodec", "seq"},
		{"text", "BLOCK", "Lz4Codec", "map"},
	} {
		t.Run(fmt.Sprintf("%s-%s-%s-%s", c.format, c.kind, c.compression, c.codec), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "1")
			h.Do(t, fmt.Sprintf("job out=file://%s format=%s type=%s compression=%s codec=%s records=%d reducers=%d tag=v",
				out, c.format, c.kind, c.compression, c.codec, records, reducers))
			seen := make([]bool, records)
			for p := range reducers {
				name := fmt.Sprintf("part-r-%05d", p)
				if c.format == "map" {
					name = filepath.Join(name, "data")
				}
				readPart(t, filepath.Join(out, name), p, reducers, seen)
			}
			for i, ok := range seen {
				if !ok {
					t.Fatalf("record %d is in no file", i)
				}
			}
		})
	}
}

func readPart(t *testing.T, path string, partition, partitions int, seen []bool) {
	t.Helper()
	f, err := os.Open(path)
	expect.NoError(t, err)
	defer f.Close()
	r, err := sequencefile.NewReader(f, path)
	expect.NoError(t, err)
	defer r.Close()
	for r.Scan() {
		var i int
		if n, err := fmt.Sscanf(string(r.Key()), "key-%09d", &i); n != 1 || err != nil || i >= len(seen) || seen[i] {
			t.Fatalf("%s: key %q: %v", path, r.Key(), err)
		}
		seen[i] = true
		if string(r.Value()) != jobValue(i) {
			t.Fatalf("%s: %s has the value %q, want %q", path, r.Key(), r.Value(), jobValue(i))
		}
		if p := shard.Hadoop.Partition(r.Key(), partitions); p != partition {
			t.Fatalf("%s: %s belongs to partition %d", path, r.Key(), p)
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
}

// jobValue returns the value that the job gives to record i: see Jobs.java.
func jobValue(i int) string {
	b := append(strconv.AppendInt([]byte("v"), int64(i), 10), '-')
	for len(b) < 100 {
		b = append(b, byte('a'+(i*7+len(b)*13)%26))
	}
	return string(b)
}

// Hadoop reads the files that we write.
func TestHadoopReadsOurSequenceFiles(t *testing.T) {
	h := running(t)
	dir := t.TempDir()
	try := func(name string, o sequencefiles.WriterOptions) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			sum := newSum()
			sequencefiles.WriteFile(t, path, o, func(add func(key, value string)) {
				for key, value := range someRecords() {
					add(string(key), string(value))
					sum.add(key, value, false)
				}
			})
			sum.check(t, h.Do(t, "read file="+path))
		})
	}
	try("none", sequencefiles.WriterOptions{SyncInterval: 500, Metadata: map[string]string{"a": "b"}})
	try("text", sequencefiles.WriterOptions{KeyClass: "org.apache.hadoop.io.Text", ValueClass: "org.apache.hadoop.io.Text"})
	for _, codec := range []string{"DefaultCodec", "DeflateCodec", "GzipCodec", "SnappyCodec", "Lz4Codec", "ZStandardCodec"} {
		class := "org.apache.hadoop.io.compress." + codec
		try("record-"+codec, sequencefiles.WriterOptions{Compression: sequencefiles.Record, Codec: class})
		try("block-"+codec, sequencefiles.WriterOptions{Compression: sequencefiles.Block, Codec: class, BlockSize: 3000})
	}
}

// Sparkey reads the files that we write.
func TestSparkeyReadsOurLogs(t *testing.T) {
	h := running(t)
	dir := t.TempDir()
	for name, o := range map[string]sparkeylog.WriterOptions{
		"none":         {},
		"snappy-small": {Compression: sparkey.Snappy, BlockSize: 40},
		"snappy":       {Compression: sparkey.Snappy},
		"zstd":         {Compression: sparkey.Zstd, BlockSize: 2000},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name+".spl")
			f, err := os.Create(path)
			expect.NoError(t, err)
			defer f.Close()
			sum := writeLog(t, f, o)
			sum.check(t, h.Do(t, "read file="+path))
		})
	}
}

// writeLog writes records, and after some of them deletes the first half of their key.
func writeLog(t *testing.T, f *os.File, o sparkeylog.WriterOptions) *sum {
	t.Helper()
	w, err := sparkeylog.NewWriter(f, o)
	expect.NoError(t, err)
	sum := newSum()
	for key, value := range someRecords() {
		expect.NoError(t, w.Put(key, value))
		sum.add(key, value, false)
		if half := key[:len(key)/2]; len(key)%5 == 4 {
			expect.NoError(t, w.Delete(half))
			sum.add(half, nil, true)
		}
	}
	expect.NoError(t, w.Close())
	return sum
}

// someRecords yields keys of 1 to 300 bytes of all kinds, and values of 0 to 200 KB.
func someRecords() func(yield func(key, value []byte) bool) {
	rnd := rand.New(rand.NewPCG(3, 4))
	bytes := func(n, of int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.IntN(of))
		}
		return b
	}
	return func(yield func(key, value []byte) bool) {
		for i := range 300 {
			size := rnd.IntN(150)
			if i%100 == 7 {
				size = i * 1000
			}
			if !yield(bytes(1+i, 256), bytes(size, 1+i%256)) {
				return
			}
		}
	}
}

// sum is the digest of records computed by the harness's command "read".
type sum struct {
	n int
	h hash.Hash
}

func newSum() *sum { return &sum{h: sha256.New()} }

func (s *sum) add(key, value []byte, deleted bool) {
	s.n++
	first := []byte{0}
	if deleted {
		first[0] = 1
	}
	s.h.Write(first)
	for _, b := range [][]byte{key, value} {
		s.h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
		s.h.Write(b)
	}
}

func (s *sum) check(t *testing.T, reply map[string]string) {
	t.Helper()
	if want := hex.EncodeToString(s.h.Sum(nil)); reply["records"] != strconv.Itoa(s.n) || reply["sha256"] != want {
		t.Errorf("read %v, want %d records, %s", reply, s.n, want)
	}
}
