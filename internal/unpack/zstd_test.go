package unpack

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func encode(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	if err != nil {
		t.Fatal(err)
	}
	return z.EncodeAll(data, nil)
}

func TestMost(t *testing.T) {
	for _, n := range []int{0, 1, 1000, MaxBlock, 1 << 20} {
		frame := encode(t, bytes.Repeat([]byte("zstd "), n/5+1)[:n])
		most, err := mostZstd(frame)
		if err != nil || most < n || most > n+MaxBlock {
			t.Errorf("%d bytes: at most %d, %v", n, most, err)
		}
		both, err := mostZstd(append(bytes.Clone(frame), frame...))
		if err != nil || both != 2*most {
			t.Errorf("%d bytes twice: at most %d, %v", n, both, err)
		}
		for cut := 1; cut < len(frame); cut++ {
			if most, err := mostZstd(frame[:cut]); err == nil {
				t.Fatalf("%d bytes, cut at %d of %d: at most %d", n, cut, len(frame), most)
			}
		}
	}
}

func TestClaims(t *testing.T) {
	for name, test := range map[string]struct {
		frame string
		want  error
	}{
		"a size of 1 GiB":     {"\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x40\x01\x00\x00", errSize},
		"a reserved block":    {"\x28\xb5\x2f\xfd\x20\x00\x07\x00\x00", errBlock},
		"a run of 2 MiB":      {"\x28\xb5\x2f\xfd\x20\x00\x03\x00\xffx", errBlock},
		"a raw block of more": {"\x28\xb5\x2f\xfd\x20\x00\x81\x00\x00x", io.ErrUnexpectedEOF},
		"a skippable of more": {"\x50\x2a\x4d\x18\xff\xff\xff\x7fx", io.ErrUnexpectedEOF},
	} {
		if most, err := mostZstd([]byte(test.frame)); !errors.Is(err, test.want) {
			t.Errorf("%s: at most %d, %v, want %v", name, most, err, test.want)
		}
	}
}
