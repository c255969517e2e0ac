package sequencefile

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"sequins/internal/unpack"
	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// expanding is n MiB of zeros, compressed: streams, frames or blocks one after the other count as one.
func expanding(t *testing.T, codec string, n int) []byte {
	t.Helper()
	return bytes.Repeat(encodeAll(t, codec, make([]byte, 1<<20)), n)
}

// recordBomb is a file with one record, whose value expands to n MiB.
func recordBomb(t *testing.T, codec string, n int) []byte {
	t.Helper()
	file := writeFile(t, sequencefiles.WriterOptions{Compression: sequencefiles.Record, Codec: codec, KeyClass: "k", ValueClass: "v"}, nil)
	value := expanding(t, codec, n)
	file = binary.BigEndian.AppendUint32(file, uint32(len(value)+1))
	file = binary.BigEndian.AppendUint32(file, 1)
	return append(append(file, 'k'), value...)
}

// blockBomb is a file with a block of one record, whose key or value expands to n MiB.
func blockBomb(t *testing.T, codec string, n int, inKey bool) []byte {
	t.Helper()
	file := writeFile(t, sequencefiles.WriterOptions{Compression: sequencefiles.Block, Codec: codec, KeyClass: "k", ValueClass: "v", SyncSeed: "test"}, nil)
	sync := md5.Sum([]byte("test"))
	file = append(append(file, 0xff, 0xff, 0xff, 0xff), sync[:]...)
	file = sequencefiles.AppendLength(file, 1)
	small, large := []byte{1}, sequencefiles.AppendLength(nil, n<<20)
	if inKey {
		small, large = large, small
	}
	for i, column := range [][]byte{small, {'k'}, large, {'v'}} {
		packed := encodeAll(t, codec, column)
		if (i == keyBytes) == inKey && (i == keyBytes || i == valueBytes) {
			packed = expanding(t, codec, n)
		}
		file = append(sequencefiles.AppendLength(file, len(packed)), packed...)
	}
	return file
}

// TestLimitOfCodecs decompresses more than a decoder may return, in each codec, from several streams and from a large one: it is an
// error, with memory proportional to the limit.
func TestLimitOfCodecs(t *testing.T) {
	eachCodec(t, func(t *testing.T, codec string) {
		const limit = 4 << 20
		allowed := uint64(5 * limit)
		switch codec {
		case ZStandardCodec:
			allowed += unpack.MaxWindow
		case BZip2Codec:
			allowed += 8 << 20 // for a block
		}
		streams := expanding(t, codec, limit>>20+1)
		for _, src := range [][]byte{streams, bomb(t, codec, 8*limit)} {
			runtime.GC()
			before := allocated()
			got, err := codecs[codec]()(nil, src, limit)
			if n := allocated() - before; err == nil || !strings.Contains(err.Error(), "decompressed size exceeds") || n > allowed {
				t.Errorf("%d bytes, %d MiB allocated, %v", len(got), n>>20, err)
			}
		}
		if got, err := codecs[codec]()(nil, streams, limit+(1<<20)); len(got) != limit+(1<<20) || err != nil {
			t.Errorf("as much as it may return: %d bytes, %v", len(got), err)
		}
	})
}

// TestExpandingValues checks values slightly larger than MaxExpanded: they are errors, with memory
// proportional to MaxExpanded. Values that are 1 MiB smaller are read.
func TestExpandingValues(t *testing.T) {
	const over, under = MaxExpanded>>20 + 1, MaxExpanded>>20 - 1
	const codec = SnappyCodec
	for name, file := range map[string][]byte{
		"RECORD": recordBomb(t, codec, over), "BLOCK, value": blockBomb(t, codec, over, false), "BLOCK, key": blockBomb(t, codec, over, true),
	} {
		runtime.GC()
		before := allocated()
		got, err := readFile(file)
		n := allocated() - before
		if len(got) > 0 || n > 5*MaxExpanded {
			t.Errorf("%s: %d records, %d MiB allocated", name, len(got), n>>20)
		}
		if c := wantCorrupt(t, err); !strings.Contains(c.Reason, "decompressed size exceeds") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, file := range map[string][]byte{"RECORD": recordBomb(t, codec, under), "BLOCK": blockBomb(t, codec, under, false)} {
		r, err := NewReader(bytes.NewReader(file), "test")
		expect.NoError(t, err)
		if !r.Scan() || len(r.Value()) != under<<20 || r.Scan() || r.Err() != nil {
			t.Errorf("%s: a value of %d bytes, %v", name, len(r.Value()), r.Err())
		}
		r.Close()
	}
}

// TestManyTinyRecords reads a block of 2 Gi empty records in a few KB, with memory for the lengths that there are.
func TestManyTinyRecords(t *testing.T) {
	const codec = BZip2Codec
	file := writeFile(t, sequencefiles.WriterOptions{Compression: sequencefiles.Block, Codec: codec, KeyClass: "k", ValueClass: "v", SyncSeed: "test"}, nil)
	sync := md5.Sum([]byte("test"))
	file = append(append(file, 0xff, 0xff, 0xff, 0xff), sync[:]...)
	file = sequencefiles.AppendLength(file, 1<<31-1)
	for i := range columnNames {
		var column []byte
		if i == keyLengths || i == valueLengths {
			column = expanding(t, codec, 16)
		}
		file = append(sequencefiles.AppendLength(file, len(column)), column...)
	}
	before := allocated()
	r, err := NewReader(bytes.NewReader(file), "test")
	expect.NoError(t, err)
	defer r.Close()
	records := 0
	for r.Scan() {
		records++
	}
	wantCorrupt(t, r.Err())
	if n := allocated() - before; records != 16<<20 || n > 4*2*16<<20 {
		t.Errorf("%d records of %d KiB, %d MiB allocated", records, len(file)>>10, n>>20)
	}
}
