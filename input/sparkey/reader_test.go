package sparkey_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/iotest"

	"sequins/input/sparkey"
	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/sparkeylog"
)

func TestRoundTrip(t *testing.T) {
	sets := map[string][]entry{
		"no entries":   nil,
		"one byte":     {{key: []byte("a")}},
		"nothing":      {{key: []byte{}}},
		"one delete":   {{key: []byte("key")}, {key: []byte("key"), deleted: true}},
		"small":        entries(1000, 20),
		"middling":     entries(200, 3000),
		"large values": {{key: []byte("a"), value: make([]byte, 3<<20)}, {key: make([]byte, 70_000)}, {key: []byte("b"), value: make([]byte, 300_000)}},
	}
	for name, o := range options {
		for set, want := range sets {
			t.Run(name+"/"+set, func(t *testing.T) {
				log := write(t, o, want)
				got, err := read(bytes.NewReader(log))
				expect.NoError(t, err)
				same(t, got, want)
			})
		}
	}
}

func TestSlowReader(t *testing.T) {
	want := entries(100, 300)
	for name, o := range options {
		got, err := read(iotest.OneByteReader(bytes.NewReader(write(t, o, want))))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, got, want)
		got, err = read(iotest.DataErrReader(bytes.NewReader(write(t, o, want))))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, got, want)
	}
}

// Files of Sparkey's own writer are read.
func TestFixtures(t *testing.T) {
	for _, f := range harness.FixturesOf(t, "sparkey") {
		for _, name := range f.Meta.Names {
			t.Run(f.Name+"/"+name, func(t *testing.T) { checkFixture(t, f, name) })
		}
	}
}

func checkFixture(t *testing.T, f harness.Fixture, name string) {
	file, err := os.Open(filepath.Join(f.Dir, name))
	expect.NoError(t, err)
	defer file.Close()
	r, err := sparkey.NewReader(file, name)
	expect.NoError(t, err)
	defer r.Close()
	if got := strings.ToUpper(r.Header().Compression.String()); got != f.Meta.Compression {
		t.Errorf("compression %s, want %s", got, f.Meta.Compression)
	}
	var last int64
	for want := range f.Of(t, name) {
		if !r.Scan() {
			t.Fatalf("ends before %q: %v", want.Key, r.Err())
		}
		if !bytes.Equal(r.Key(), want.Key) || r.Deleted() != want.Deleted || !want.HasValue(r.Value()) {
			t.Fatalf("at %d: key %q, %d bytes of value, deleted %v; want %q, %d, %v",
				r.Offset(), r.Key(), len(r.Value()), r.Deleted(), want.Key, want.ValueLen, want.Deleted)
		}
		if r.Offset() < 84 || r.Offset() < last {
			t.Fatalf("offset %d after %d", r.Offset(), last)
		}
		last = r.Offset()
	}
	if r.Scan() || r.Err() != nil {
		t.Errorf("more than expected: %q, %v", r.Key(), r.Err())
	}
}

func TestOffsets(t *testing.T) {
	log := write(t, sparkeylog.WriterOptions{}, []entry{{key: []byte("ab"), value: []byte("cde")}, {key: []byte("f"), deleted: true}, {key: []byte("g")}})
	r, err := sparkey.NewReader(bytes.NewReader(log), "test.spl")
	expect.NoError(t, err)
	for _, want := range []int64{84, 84 + 7, 84 + 7 + 3} {
		if !r.Scan() || r.Offset() != want {
			t.Errorf("offset %d, want %d: %v", r.Offset(), want, r.Err())
		}
	}
}

// The writers in C and Java differ in what they do with the delete of a key that is longer than every key put before: the one writes it,
// although the header's longest key is that of the puts, and the other, as ours does, leaves it out.
func TestDeleteOfALongerKey(t *testing.T) {
	log := write(t, sparkeylog.WriterOptions{}, []entry{{key: []byte("ab")}, {key: []byte("abc"), deleted: true}})
	got, err := read(bytes.NewReader(log))
	expect.NoError(t, err)
	same(t, got, []entry{{key: []byte("ab")}})

	h := binary.LittleEndian
	log = append(log, 0, 3, 'a', 'b', 'c')
	h.PutUint64(log[24:], 1)                // deletes
	h.PutUint64(log[32:], uint64(len(log))) // data end
	h.PutUint64(log[56:], 5)                // size of deletes
	if got, err = read(bytes.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	same(t, got, []entry{{key: []byte("ab")}, {key: []byte("abc"), deleted: true}})
}

// A log cut off anywhere is damaged, never shorter.
func TestTruncated(t *testing.T) {
	for name, o := range options {
		log := write(t, o, entries(15, 60))
		for n := range log {
			_, err := read(bytes.NewReader(log[:n]))
			if !errors.Is(err, sparkey.ErrCorrupt) {
				t.Fatalf("%s: the first %d of %d bytes: %v", name, n, len(log), err)
			}
		}
	}
}

func TestTrailingBytes(t *testing.T) {
	for name, o := range options {
		log := write(t, o, entries(10, 60))
		if _, err := read(bytes.NewReader(append(log, 0))); !errors.Is(err, sparkey.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// There are no checksums, so a flipped bit may change a key or value; it must not change how many there are, nor how long, unseen.
func TestFlippedBits(t *testing.T) {
	for name, o := range options {
		want := entries(15, 40)
		log := write(t, o, want)
		missed := 0
		for i := range len(log) * 8 {
			log[i/8] ^= 1 << (i % 8)
			got, err := read(bytes.NewReader(log))
			log[i/8] ^= 1 << (i % 8)
			if errors.Is(err, sparkey.ErrCorrupt) || errors.Is(err, sparkey.ErrUnsupported) {
				continue
			}
			missed++
			if err != nil {
				t.Fatalf("%s: bit %d: %v", name, i, err)
			}
			if n, m := total(got), total(want); len(got) != len(want) || n != m {
				t.Fatalf("%s: bit %d: %d entries of %d bytes, want %d of %d", name, i, len(got), n, len(want), m)
			}
		}
		t.Logf("%s: %d of %d flips go unseen", name, missed, len(log)*8)
	}
}

func total(all []entry) (n int) {
	for _, e := range all {
		n += len(e.key) + len(e.value)
	}
	return n
}

func TestHeaders(t *testing.T) {
	put32 := func(at int, v uint32) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], v) }
	}
	put64 := func(at int, v uint64) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint64(b[at:], v) }
	}
	for _, c := range []struct {
		name   string
		change func([]byte)
		want   error
	}{
		{"magic", put32(0, 0x49b39c96), sparkey.ErrCorrupt},
		{"an index", put32(0, 0x9a11318f), sparkey.ErrCorrupt},
		{"major version", put32(4, 2), sparkey.ErrUnsupported},
		{"minor version", put32(8, 1), sparkey.ErrUnsupported},
		{"compression", put32(64, 3), sparkey.ErrUnsupported},
		{"file identifier", put32(12, 99), nil},
		{"one put more", put64(16, 101), sparkey.ErrCorrupt},
		{"all puts", put64(16, 1<<63), sparkey.ErrCorrupt},
		{"one delete more", put64(24, 1), sparkey.ErrCorrupt},
		{"data end before the header's", put64(32, 83), sparkey.ErrCorrupt},
		{"data end beyond all", put64(32, 1<<63), sparkey.ErrCorrupt},
		{"data end too far", put64(32, 1<<40), sparkey.ErrCorrupt},
		{"longest key", put64(40, 1<<40), sparkey.ErrCorrupt},
		{"longest value", put64(48, 1<<40), sparkey.ErrCorrupt},
		{"shorter key", put64(40, 1), sparkey.ErrCorrupt},
		{"shorter value", put64(48, 1), sparkey.ErrCorrupt},
		{"size of deletes", put64(56, 1<<64-1), sparkey.ErrCorrupt},
		{"block size", put32(68, 9), sparkey.ErrCorrupt},
		{"huge block size", put32(68, 1<<31), sparkey.ErrCorrupt},
		{"size of puts", put64(72, 7), sparkey.ErrCorrupt},
	} {
		var all []entry
		for i := range 100 {
			all = append(all, entry{key: fmt.Appendf(nil, "k%d", i), value: []byte("value")})
		}
		log := write(t, sparkeylog.WriterOptions{Compression: sparkey.Snappy, BlockSize: 64}, all)
		c.change(log)
		if _, err := read(bytes.NewReader(log)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// A header that promises terabytes gets no memory for it.
func TestPromisesClaimNoMemory(t *testing.T) {
	hostile := func(c sparkey.Compression, data ...byte) []byte {
		h := binary.LittleEndian
		b := make([]byte, 84)
		h.PutUint32(b, 0x49b39c95)
		h.PutUint32(b[4:], 1)
		h.PutUint64(b[16:], 1)        // puts
		h.PutUint64(b[32:], 84+1<<40) // data end
		h.PutUint64(b[40:], 1<<30)
		h.PutUint64(b[48:], 1<<31-1)
		h.PutUint32(b[64:], uint32(c))
		h.PutUint32(b[68:], 64<<20)
		h.PutUint64(b[72:], 1<<40)
		return append(b, data...)
	}
	lengths := binary.AppendUvarint(binary.AppendUvarint(nil, 1<<30), 1<<31-1)
	for name, log := range map[string][]byte{
		"entry":        hostile(sparkey.None, append(lengths, "abc"...)...),
		"block":        hostile(sparkey.Snappy, append(binary.AppendUvarint(nil, 60<<20), "abc"...)...),
		"snappy block": hostile(sparkey.Snappy, append([]byte{7}, append(binary.AppendUvarint(nil, 60<<20), "abc"...)...)...),
		"zstd block":   hostile(sparkey.Zstd, 14, 0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 1, 1),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := read(bytes.NewReader(log))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, sparkey.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: %d bytes allocated for a file of %d", name, n, len(log))
		}
	}
}

// An error of the underlying reader is no damage: the loader may try again.
func TestReaderErrors(t *testing.T) {
	broken := errors.New("connection lost")
	for name, o := range options {
		log := write(t, o, entries(15, 60))
		for n := range log {
			for _, cause := range []error{broken, io.ErrUnexpectedEOF, fmt.Errorf("cut off: %w", io.EOF)} {
				_, err := read(io.MultiReader(bytes.NewReader(log[:n]), iotest.ErrReader(cause)))
				if !errors.Is(err, cause) || errors.Is(err, sparkey.ErrCorrupt) || !strings.Contains(err.Error(), "test.spl") {
					t.Fatalf("%s: %v after %d bytes: %v", name, cause, n, err)
				}
			}
		}
	}
}

func TestCorruptErrorSaysWhere(t *testing.T) {
	log := write(t, sparkeylog.WriterOptions{}, []entry{{key: []byte("ab"), value: []byte("cde")}, {key: []byte("f"), value: []byte("g")}})
	log[84+7] = 0x7f // the second key is longer than the longest
	_, err := read(bytes.NewReader(log))
	if err == nil || !strings.HasPrefix(err.Error(), "test.spl: at offset 91: corrupt Sparkey log: ") {
		t.Fatalf("%v", err)
	}
}

func TestScanAllocatesNothing(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // collecting allocates a little by itself
	for name, o := range options {
		log := write(t, o, entries(40_000, 50))
		r, err := sparkey.NewReader(bytes.NewReader(log), name)
		expect.NoError(t, err)
		// The function runs twice, and the second run is counted: by then the buffers have grown to what they need.
		n := testing.AllocsPerRun(1, func() {
			for range 18_000 {
				r.Scan()
			}
		})
		allowed := 2.0 // of the runtime's own goroutines, which are counted, too
		if o.Compression == sparkey.Zstd {
			allowed = 100 // its decoder takes tables from a sync.Pool, which may lose them
		}
		if n > allowed {
			t.Errorf("%s: %v allocations for 18,000 records", name, n)
		}
		if r.Err() != nil || r.Key() == nil {
			t.Errorf("%s: %v", name, r.Err())
		}
		r.Close()
	}
}

func TestClosed(t *testing.T) {
	r, err := sparkey.NewReader(bytes.NewReader(write(t, options["zstd-50"], entries(9, 9))), "test.spl")
	expect.NoError(t, err)
	for range 2 {
		expect.NoError(t, r.Close())
	}
	if r.Scan() || r.Err() == nil {
		t.Error("a closed reader goes on")
	}
}

func BenchmarkScan(b *testing.B) {
	for _, name := range []string{"none", "snappy-4096", "zstd-65536"} {
		b.Run(name, func(b *testing.B) {
			all := entries(100_000, 200)
			log := write(b, options[name], all)
			b.SetBytes(int64(total(all)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := sparkey.NewReader(bytes.NewReader(log), name)
				expect.NoError(b, err)
				for r.Scan() {
				}
				if r.Err() != nil {
					b.Fatal(r.Err())
				}
				r.Close()
			}
			b.ReportMetric(float64(len(all))*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
