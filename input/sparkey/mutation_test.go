package sparkey_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"sequins/input/sparkey"
	"sequins/test/expect"
	"sequins/test/mutate"
	"sequins/test/sparkeylog"
)

// TestMutations damages logs: reading ends with an error of the package, or with counts that match the header. There
// are no checksums.
func TestMutations(t *testing.T) {
	want := entries(60, 200)
	var files [][]byte
	for _, name := range slices.Sorted(maps.Keys(options)) {
		files = append(files, write(t, options[name], want))
	}
	limit := func(size int) uint64 { return 16<<20 + 2048*uint64(size) }
	mutate.Run(t, files, limit, func(t *testing.T, _ int, f mutate.File) {
		got, err := read(bytes.NewReader(f.Data))
		if err != nil && !errors.Is(err, sparkey.ErrCorrupt) && !errors.Is(err, sparkey.ErrUnsupported) {
			t.Errorf("an error of no class: %v", err)
		}
		if f.Cut {
			if err == nil || len(got) > len(want) {
				t.Fatalf("cut at %d: %d entries, %v", f.First, len(got), err)
			}
			same(t, got, want[:len(got)])
		}
	})
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// TestExpandingValues reads a value slightly larger than MaxExpanded from some KB.
func TestExpandingValues(t *testing.T) {
	for _, test := range []struct {
		size int
		good bool
	}{{sparkey.MaxExpanded + 1, false}, {sparkey.MaxExpanded - 100, true}} {
		log := write(t, sparkeylog.WriterOptions{Compression: sparkey.Zstd, BlockSize: 1 << 20}, []entry{{key: []byte("k"), value: make([]byte, test.size)}})
		runtime.GC()
		before := allocated()
		rd, err := sparkey.NewReader(bytes.NewReader(log), "test.spl")
		expect.NoError(t, err)
		found := rd.Scan()
		if found != test.good || found && len(rd.Value()) != test.size {
			t.Errorf("a value of %d bytes: found %v, %v", test.size, found, rd.Err())
		}
		if !test.good && (!errors.Is(rd.Err(), sparkey.ErrCorrupt) || !strings.Contains(rd.Err().Error(), "more than the")) {
			t.Errorf("a value of %d bytes: %v", test.size, rd.Err())
		}
		if n := allocated() - before; n > 8*sparkey.MaxExpanded {
			t.Errorf("a value of %d bytes: %d MiB allocated for %d KiB", test.size, n>>20, len(log)>>10)
		}
		rd.Close()
	}
}

// TestClaims checks blocks and entries whose claimed lengths exceed their content.
func TestClaims(t *testing.T) {
	const most = sparkey.MaxBlockSize
	le := binary.LittleEndian
	log := func(compression uint32, block []byte) []byte {
		data := append(binary.AppendUvarint(nil, uint64(len(block))), block...)
		if compression == 0 {
			data = block
		}
		h := le.AppendUint32(nil, 0x49b39c95)
		h = le.AppendUint32(le.AppendUint32(le.AppendUint32(h, 1), 0), 7)
		size := uint64(1 << 40)
		if compression == 0 {
			size = uint64(len(data))
		}
		h = le.AppendUint64(le.AppendUint64(h, 1), 0)
		h = le.AppendUint64(le.AppendUint64(le.AppendUint64(h, 84+uint64(len(data))), size), size)
		h = le.AppendUint32(le.AppendUint32(le.AppendUint64(h, 0), compression), most)
		return append(le.AppendUint32(le.AppendUint64(h, size), 1), data...)
	}
	frame := []byte("\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x04\x01\x00\x00") // with a content size of 64 MiB
	z, err := zstd.NewWriter(nil)
	expect.NoError(t, err)
	entry := append(binary.AppendUvarint([]byte{2}, 1<<31-1), "kv"...)
	for name, raw := range map[string][]byte{
		"snappy block of 64 MiB":  log(1, append(binary.AppendUvarint(nil, most), "xx"...)),
		"value of 2 GiB, in zstd": log(2, z.EncodeAll(entry, nil)), "value of 2 GiB": log(0, entry),
		"zstd frame of 64 MiB": log(2, frame),
	} {
		limit := uint64(4 << 20)
		if name == "zstd frame of 64 MiB" {
			limit += 64 << 20 // the window, of which nothing is used
		}
		runtime.GC()
		before := allocated()
		_, err := read(bytes.NewReader(raw))
		if n := allocated() - before; !errors.Is(err, sparkey.ErrCorrupt) || n > limit {
			t.Errorf("%s: %d KiB allocated, %v", name, n>>10, err)
		}
	}
}
