package sequencefile

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"

	"sequins/internal/unpack"
	"sequins/test/expect"
	"sequins/test/noise"
	"sequins/test/sequencefiles"
)

func decodeAll(d unpack.Decoder, src []byte) ([]byte, error) { return d(nil, src, 1<<30) }

func encodeAll(t testing.TB, codec string, src []byte) []byte {
	t.Helper()
	out, err := sequencefiles.Compress(codec, src)
	expect.NoError(t, err)
	return out
}

func eachCodec(t *testing.T, test func(t *testing.T, codec string)) {
	for _, codec := range sequencefiles.Codecs() {
		t.Run(path.Ext(codec)[1:], func(t *testing.T) { test(t, codec) })
	}
}

// TestStreams decodes streams one after the other as one, as Hadoop does; nothing at all is a stream, too.
func TestStreams(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	eachCodec(t, func(t *testing.T, codec string) {
		d := codecs[codec]()
		var want, all []byte
		for i, n := range []int{1, 0, 1000, 3, 300_000, 0, 70_000} {
			part := noise.Bytes(rng, n)
			if n == 0 && (codec == SnappyCodec || codec == Lz4Codec) {
				continue // the block of no bytes is their end
			}
			want, all = append(want, part...), append(all, encodeAll(t, codec, part)...)
			got, err := decodeAll(d, all)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d streams: %d bytes, want %d, error %v", i+1, len(got), len(want), err)
			}
			for _, garbage := range []string{"x", "garb", "\x00\x00\x00\x00x", "\x1f\x8b"} {
				if got, err := decodeAll(d, slices.Concat(all, []byte(garbage))); err == nil {
					t.Fatalf("%d streams and %q: no error, %d bytes", i+1, garbage, len(got))
				}
			}
		}
		if got, err := decodeAll(d, nil); err != nil || len(got) != 0 {
			t.Fatalf("nothing gave %d bytes, error %v", len(got), err)
		}
	})
}

// TestHadoopFraming takes the blocks of snappy apart into chunks as different writers do.
func TestHadoopFraming(t *testing.T) {
	chunk := func(s string) string {
		c := snappy.Encode(nil, []byte(s))
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(c)))) + string(c)
	}
	block := func(n int, chunks ...string) string {
		s := string(binary.BigEndian.AppendUint32(nil, uint32(n)))
		for _, c := range chunks {
			s += c
		}
		return s
	}
	for _, test := range []struct{ name, src, want string }{
		{"one block, one chunk", block(5, chunk("hello")), "hello"},
		{"one block, chunks", block(11, chunk("hello"), chunk(" "), chunk("world")), "hello world"},
		{"blocks", block(5, chunk("hello")) + block(6, chunk(" world")), "hello world"},
		{"block of nothing", block(0), ""},
		{"block of nothing at the end, as behind a large write", block(5, chunk("hello")) + block(0), "hello"},
		{"block of nothing with a chunk", block(0, chunk("")), ""},
		{"chunk larger than its block", block(4, chunk("hello")), "error"},
		{"chunks smaller than their block", block(6, chunk("hello")), "error"},
		{"chunk of nothing", block(5, chunk(""), chunk("hello")), "error"},
		{"chunk of length 0", block(5, "\x00\x00\x00\x00", chunk("hello")), "error"},
		{"chunk that ends early", block(5, chunk("hello")[:8]), "error"},
		{"chunk of 2 GiB", block(5, "\x7f\xff\xff\xffx"), "error"},
		{"chunk of 4 GiB", block(5, "\xff\xff\xff\xffx"), "error"},
		{"chunk that claims 2 GiB", block(1<<31-1, "\x00\x00\x00\x06\xff\xff\xff\xff\x07x"), "error"},
		{"block of 4 GiB", "\xff\xff\xff\xff" + chunk("hello"), "error"},
		{"block without chunk", block(5), "error"},
		{"half a block length", "\x00\x00", "error"},
		{"something behind the end", block(5, chunk("hello")) + block(0) + "x", "error"},
	} {
		before := allocated()
		got, err := decodeAll(unpack.Hadoop(unpack.Snappy), []byte(test.src))
		if err != nil {
			got = []byte("error")
		}
		if string(got) != test.want {
			t.Errorf("%s: %q, error %v, want %q", test.name, got, err, test.want)
		}
		if n := allocated() - before; n > 1<<20 {
			t.Errorf("%s: %d bytes allocated", test.name, n)
		}
	}
}

// zstdBlock is the maximum decompressed size of a block of zstd, in bytes.
const zstdBlock = 128 << 10

// bomb is a column that expands as far as a codec lets it: n zeros.
func bomb(t *testing.T, codec string, n int) []byte {
	if codec == ZStandardCodec { // blocks of one byte, repeated: 32,000 times smaller
		b := []byte("\x28\xb5\x2f\xfd\x00\x58")
		for ; n > 0; n -= zstdBlock {
			head := zstdBlock<<3 | 1<<1
			if n <= zstdBlock {
				head |= 1
			}
			b = append(b, byte(head), byte(head>>8), byte(head>>16), 0)
		}
		return b
	}
	return encodeAll(t, codec, make([]byte, n))
}

// TestBombs reads blocks whose values expand as far as a codec lets them: memory is a small multiple of what comes out.
func TestBombs(t *testing.T) {
	eachCodec(t, func(t *testing.T, codec string) {
		const records, size = 1 << 10, 1 << 14 // 16 MiB
		lengths := bytes.Repeat(sequencefiles.AppendLength(nil, size), records)
		file := writeFile(t, sequencefiles.WriterOptions{Compression: sequencefiles.Block, Codec: codec, KeyClass: "Key", ValueClass: "Value", SyncSeed: "test"}, nil)
		sync := file[len(file)-syncSize:]
		file = append(append(file, 0xff, 0xff, 0xff, 0xff), sync...)
		file = sequencefiles.AppendLength(file, records)
		for _, column := range [][]byte{
			encodeAll(t, codec, make([]byte, records)), nil, encodeAll(t, codec, lengths), bomb(t, codec, records*size),
		} {
			file = append(sequencefiles.AppendLength(file, len(column)), column...)
		}
		r, err := NewReader(bytes.NewReader(file), "test")
		expect.NoError(t, err)
		defer r.Close()
		runtime.GC()
		before := allocated()
		n := 0
		for ; r.Scan(); n++ {
			if len(r.Key()) != 0 || len(r.Value()) != size {
				t.Fatalf("record %d: %d and %d bytes", n, len(r.Key()), len(r.Value()))
			}
		}
		if n != records || r.Err() != nil {
			t.Fatalf("%d records, error %v", n, r.Err())
		}
		if n := allocated() - before; n > 4*records*size {
			t.Errorf("%d bytes allocated for a file of %d", n, len(file))
		}
	})
}

// TestLargeColumns reads large blocks with records of all sizes in them.
func TestLargeColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var records []record
	for size := 0; size < 6<<20; {
		n := rng.IntN(1 << (1 + rng.IntN(19)))
		records = append(records, record{noise.Bytes(rng, n%5000), noise.Bytes(rng, n)})
		size += n
	}
	eachCodec(t, func(t *testing.T, codec string) {
		if codec == BZip2Codec {
			return // its writer is slow, and TestBombs has a large column of it
		}
		opts := sequencefiles.WriterOptions{Compression: sequencefiles.Block, Codec: codec, BlockSize: 1 << 30}
		got, err := readFile(writeFile(t, opts, records))
		if diff := sameRecords(got, records); diff != "" || err != nil {
			t.Fatalf("%s, error %v", diff, err)
		}
	})
}

// TestManyLengths reads blocks with very many records.
func TestManyLengths(t *testing.T) {
	const n = 4<<20 + 1000
	for _, codec := range []string{DefaultCodec, SnappyCodec} {
		opts := sequencefiles.WriterOptions{Compression: sequencefiles.Block, Codec: codec, KeyClass: "Key", ValueClass: "Value", BlockSize: 1 << 30}
		var out bytes.Buffer
		w, err := sequencefiles.NewWriter(&out, opts)
		expect.NoError(t, err)
		for i := range n {
			expect.NoError(t, w.Append(nil, []byte("x"[:i/(n-1)])))
		}
		expect.NoError(t, w.Close())
		r, err := NewReader(&out, "test")
		expect.NoError(t, err)
		got := 0
		for r.Scan() {
			if got++; len(r.Key()) != 0 || string(r.Value()) != "x"[:got/n] {
				t.Fatalf("record %d is %q: %q", got, r.Key(), r.Value())
			}
		}
		if got != n || r.Err() != nil {
			t.Fatalf("%d records, want %d, error %v", got, n, r.Err())
		}
	}
}

// TestDisagreement creates blocks whose counts and lengths do not match their content.
func TestDisagreement(t *testing.T) {
	eachCodec(t, func(t *testing.T, codec string) {
		header := writeFile(t, sequencefiles.WriterOptions{Compression: sequencefiles.Block, Codec: codec, KeyClass: "Key", ValueClass: "Value", SyncSeed: "test"}, nil)
		sync := header[len(header)-syncSize:]
		for name, test := range map[string]struct {
			records int
			columns [4]string
			damaged string
		}{
			"all is well":           {2, [4]string{"\x01\x02", "abb", "\x02\x01", "aab"}, ""},
			"a record less":         {1, [4]string{"\x01\x02", "abb", "\x02\x01", "aab"}, "key lengths"},
			"a record more":         {3, [4]string{"\x01\x02", "abb", "\x02\x01", "aab"}, "key lengths"},
			"key bytes left":        {2, [4]string{"\x01\x02", "abbb", "\x02\x01", "aab"}, "keys"},
			"key bytes missing":     {2, [4]string{"\x01\x02", "ab", "\x02\x01", "aab"}, "keys"},
			"value lengths left":    {2, [4]string{"\x01\x02", "abb", "\x02\x01\x00", "aab"}, "value lengths"},
			"value lengths missing": {2, [4]string{"\x01\x02", "abb", "\x02", "aab"}, "value lengths"},
			"value bytes left":      {2, [4]string{"\x01\x02", "abb", "\x02\x01", "aabb"}, "values"},
			"value bytes missing":   {2, [4]string{"\x01\x02", "abb", "\x02\x01", "aa"}, "values"},
			"a negative length":     {2, [4]string{"\x01\xff", "abb", "\x02\x01", "aab"}, "key lengths"},
			"half a length":         {2, [4]string{"\x01\x8e\x00", "abb", "\x02\x01", "aab"}, "key lengths"},
			"a length of 2 GiB":     {1, [4]string{"\x8c\x7f\xff\xff\xf0", "abb", "\x01", "a"}, "keys"},
			"larger than a record":  {1, [4]string{"\x8c\x7f\xff\xff\xff", "abb", "\x01", "a"}, "keys"},
		} {
			file := append(append(bytes.Clone(header), 0xff, 0xff, 0xff, 0xff), sync...)
			file = sequencefiles.AppendLength(file, test.records)
			for _, column := range test.columns {
				b := encodeAll(t, codec, []byte(column))
				file = append(sequencefiles.AppendLength(file, len(b)), b...)
			}
			_, err := readFile(file)
			if test.damaged == "" {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			c := wantCorrupt(t, err)
			if c.Offset != int64(len(header)) || !bytes.HasPrefix([]byte(c.Reason), []byte(test.damaged+" of the block: ")) {
				t.Errorf("%s: %v, want damage in the %s", name, c, test.damaged)
			}
		}
	})
}

// TestZstdLevels reads frames of all kinds: with large windows, with and without size and checksum, skipped ones.
func TestZstdLevels(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, size := range []int{0, 10, 5000, (4<<20)/2 + 1, (4 << 20) + 1} {
		src := noise.Bytes(rng, size)
		for _, opts := range [][]zstd.EOption{
			{zstd.WithEncoderCRC(false)},
			{zstd.WithWindowSize(unpack.MaxWindow)},
			{zstd.WithWindowSize(unpack.MaxWindow), zstd.WithSingleSegment(true)},
		} {
			var b bytes.Buffer
			w, err := zstd.NewWriter(&b, append(opts, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))...)
			expect.NoError(t, err)
			w.Write(src)
			w.Close()
			b.WriteString("\x5a\x2a\x4d\x18\x03\x00\x00\x00abc") // to be skipped
			b.Write(w.EncodeAll(src, nil))
			if got, err := decodeAll(unpack.Zstd, b.Bytes()); err != nil || !bytes.Equal(got, slices.Concat(src, src)) {
				t.Errorf("%d bytes: got %d, error %v", 2*size, len(got), err)
			}
		}
	}
}
