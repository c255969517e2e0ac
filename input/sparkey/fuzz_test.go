package sparkey_test

import (
	"bytes"
	"errors"
	"testing"

	"sequins/input/sparkey"
	"sequins/test/expect"
	"sequins/test/sparkeylog"
)

func FuzzReader(f *testing.F) {
	for _, o := range options {
		f.Add(write(f, o, entries(20, 30)))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		_, err := read(bytes.NewReader(log))
		if err != nil && !errors.Is(err, sparkey.ErrCorrupt) && !errors.Is(err, sparkey.ErrUnsupported) {
			t.Fatalf("an error of no class: %v", err)
		}
	})
}

// All puts and deletes are read back, with any block size.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("\x03keyvalue\x00\x01k"), uint8(0), uint16(10))
	f.Add([]byte("\x03keyvalue\x00\x01k"), uint8(1), uint16(100))
	f.Add([]byte("\x03keyvalue\x00\x01k"), uint8(2), uint16(5000))
	f.Fuzz(func(t *testing.T, script []byte, compression uint8, blockSize uint16) {
		var want []entry
		longest := 0
		for len(script) > 1 {
			n, del := min(int(script[0]&0x3f), len(script)-1), script[0]&0x40 != 0
			e := entry{key: script[1 : 1+n], deleted: del}
			if !del {
				e.value = bytes.Repeat(script[:1+n], int(script[0]>>7)*30)
				longest = max(longest, n)
			}
			if script = script[1+n:]; n <= longest { // else the writer leaves it out
				want = append(want, e)
			}
		}
		o := sparkeylog.WriterOptions{Compression: sparkey.Compression(compression % 3), BlockSize: max(10, int(blockSize))}
		got, err := read(bytes.NewReader(write(t, o, want)))
		expect.NoError(t, err)
		same(t, got, want)
	})
}
