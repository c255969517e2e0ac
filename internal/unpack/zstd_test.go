package unpack

import (
	"bytes"
	"runtime/metrics"
	"testing"

	"github.com/klauspost/compress/zstd"

	"sequins/test/expect"
)

// frame is a zstd frame, whose encoder does not say how long its content is if it is told nothing of it before.
func frame(t *testing.T, data []byte, streamed bool) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	expect.NoError(t, err)
	if !streamed {
		return z.EncodeAll(data, nil)
	}
	for _, part := range [][]byte{data[:len(data)/2], data[len(data)/2:]} {
		if _, err := z.Write(part); err != nil {
			t.Fatal(err)
		}
		expect.NoError(t, z.Flush())
	}
	expect.NoError(t, z.Close())
	return b.Bytes()
}

func TestZstd(t *testing.T) {
	for _, n := range []int{0, 1, 1000, zstdRoom - 1, zstdRoom, zstdRoom + 1, 128 << 10, 1 << 20, 5 << 20} {
		data := bytes.Repeat([]byte("zstd "), n/5+1)[:n]
		for _, streamed := range []bool{false, true} {
			src := frame(t, data, streamed)
			for _, dst := range [][]byte{nil, []byte("before"), make([]byte, 6, 6+n), make([]byte, 6, 8<<20)} {
				want := append(bytes.Clone(dst), data...)
				if got, err := Zstd(dst, src, n); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes behind %d, room for %d: got %d, %v", n, len(dst), cap(dst), len(got), err)
				}
				if got, err := Zstd(dst, append(bytes.Clone(src), src...), 2*n); err != nil || !bytes.Equal(got, append(want, data...)) {
					t.Errorf("%d bytes twice behind %d, room for %d: got %d, %v", n, len(dst), cap(dst), len(got), err)
				}
				if _, err := Zstd(dst, src, n-1); err == nil && n > 0 {
					t.Errorf("%d bytes behind %d, room for %d: no error with a limit of one less", n, len(dst), cap(dst))
				}
			}
			for cut := 1; cut < min(len(src), 2000); cut += 1 + n>>16 {
				if got, err := Zstd(nil, src[:cut], n); err == nil {
					t.Fatalf("%d bytes, cut at %d of %d: %d bytes", n, cut, len(src), len(got))
				}
			}
		}
	}
}

// Claims of a few bytes are errors, and allocate no more than a window.
func TestZstdClaims(t *testing.T) {
	for name, frame := range map[string]string{
		"a size of 1 GiB":        "\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x40\x01\x00\x00",
		"a window of 128 MiB":    "\x28\xb5\x2f\xfd\x00\x88\x02\x00",
		"a window of 2 GiB":      "\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00",
		"a reserved block":       "\x28\xb5\x2f\xfd\x20\x00\x07\x00\x00",
		"a run of 2 MiB":         "\x28\xb5\x2f\xfd\x20\x00\x03\x00\xffx",
		"a raw block of more":    "\x28\xb5\x2f\xfd\x20\x00\x81\x00\x00x",
		"a skippable of more":    "\x50\x2a\x4d\x18\xff\xff\xff\x7fx",
		"a frame and some bytes": "\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00garbage",
	} {
		s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(s)
		before := s[0].Value.Uint64()
		got, err := Zstd(nil, []byte(frame), 1<<30)
		metrics.Read(s)
		if n := s[0].Value.Uint64() - before; err == nil || n > MaxWindow+8<<20 {
			t.Errorf("%s: %d bytes, %v, %d MiB allocated", name, len(got), err, n>>20)
		}
	}
}
