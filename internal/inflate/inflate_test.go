package inflate

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"sequins/test/noise"
)

// inflateAll decompresses one deflate stream, and returns what follows it.
func inflateAll(z *Decoder, src []byte) (out, rest []byte, err error) {
	return z.Decode(nil, src, 1<<30)
}

// deflaters are used again, since making one takes long. Tests here do not run side by side.
var deflaters = map[int]*flate.Writer{}

func deflate(tb testing.TB, level int, in []byte) []byte {
	w := deflaters[level]
	if w == nil {
		var err error
		if w, err = flate.NewWriter(nil, level); err != nil {
			tb.Fatal(err)
		}
		deflaters[level] = w
	}
	var b bytes.Buffer
	w.Reset(&b)
	w.Write(in[:len(in)/2])
	w.Flush() // an empty stored block in the middle
	w.Write(in[len(in)/2:])
	w.Close()
	return b.Bytes()
}

// inflateInputs cover every path: runs at every distance, the longest and farthest matches, long codes, and inputs
// of about the size of a piece and of a window.
func inflateInputs() [][]byte {
	const farthest, limit = 32 << 10, 96 << 10
	rng := rand.New(rand.NewPCG(13, 14))
	inputs := [][]byte{nil, {0}, []byte("a"), []byte(strings.Repeat("hello world ", 50))}
	for distance := 1; distance < 20; distance++ {
		inputs = append(inputs, bytes.Repeat(noise.Bytes(rng, distance), 600/distance))
	}
	for _, n := range []int{farthest, limit - 1, limit, limit + 1, limit + farthest, 300_000} {
		far := noise.Bytes(rng, n)
		copy(far[n/2:], far[:300])
		inputs = append(inputs, far, append(noise.Bytes(rng, 258), make([]byte, n)...))
	}
	window := make([]byte, farthest)
	for i := range window {
		window[i] = byte(rng.Uint32())
	}
	var skewed []byte // codes of 15 bits
	for i, n := 0, 1; i < 22; i, n = i+1, n*7/4+1 {
		skewed = append(skewed, bytes.Repeat([]byte{byte(i * 11)}, n)...)
	}
	rng.Shuffle(len(skewed), func(i, j int) { skewed[i], skewed[j] = skewed[j], skewed[i] })
	return append(inputs, bytes.Repeat(window, 4), skewed)
}

// TestInflate decompresses what the standard library compresses.
func TestInflate(t *testing.T) {
	z := new(Decoder)
	for i, in := range inflateInputs() {
		for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, 1, 6, 9} {
			src := append(deflate(t, level, in), "rest"...)
			got, rest, err := inflateAll(z, src)
			if err != nil || !bytes.Equal(got, in) || string(rest) != "rest" {
				t.Fatalf("input %d, level %d: %d bytes, want %d, error %v, rest %.10q", i, level, len(got), len(in), err, rest)
			}
		}
	}
}

// TestInflateTruncated cuts streams off at every byte.
func TestInflateTruncated(t *testing.T) {
	z := new(Decoder)
	for _, in := range inflateInputs()[:12] {
		for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, 1, 9} {
			src := deflate(t, level, in)
			for n := range src {
				if got, _, err := inflateAll(z, src[:n]); err != io.ErrUnexpectedEOF {
					t.Fatalf("level %d, cut at %d of %d: %q, error %v", level, n, len(src), got, err)
				}
			}
		}
	}
}

// TestInflateRefused are streams that are not to be believed, bit by bit as they stand in the format's description.
func TestInflateRefused(t *testing.T) {
	for _, test := range []struct {
		name, bits string // of a code in the order of its bits, of a number the lowest first
		want       error
	}{
		{"an empty block", "1 10 0000000", nil},
		{"block of kind 3", "1 11", errBlock},
		{"stored length", "1 00 00000" + strings.Repeat("0", 32), errStored},
		{"a match before the beginning", "1 10 0000001 00000 0000000", errData},
		{"a match of a byte", "1 10 01110001 0000001 00000 0000000", nil},
		{"a match that is too far", "1 10 01110001 0000001 00001 0000000", errData},
		{"length symbol 286", "1 10 01110001 11000110", errData},
		{"length symbol 287", "1 10 01110001 11000111", errData},
		{"distance symbol 30", "1 10 01110001 0000001 11110", errData},
		{"287 lengths", "1 01 01111 00000 0000" + strings.Repeat("0", 12), errCodes},
		{"31 distances", "1 01 00000 01111 0000" + strings.Repeat("0", 12), errCodes},
		{"no sizes at all", "1 01 00000 00000 0000" + strings.Repeat("0", 12) + strings.Repeat("0", 40), errCodes},
		{"too many sizes", "1 01 00000 00000 0000 100 100 100 000", errCodes},
		{"too few sizes", "1 01 00000 00000 0000 010 010 000 000", errCodes},
		{"repeat of nothing", "1 01 00000 00000 0000 100 000 000 100 1 00", errCodes},
		{"too many repeated", "1 01 00000 00000 0000 000 000 100 100 1 1111111 1 1111111 1 1111111", errCodes},
		// 18: 1 bit, 0: 2 bits, 1: 2 bits. Symbol 0 has a code, 256 does not.
		{"no code for the end", "1 01 00000 00000 0111 000 000 100 010 " + strings.Repeat("000 ", 13) + "010 11 0 1111111 0 0110101 11", errCodes},
	} {
		src := packBits(test.bits)
		if got, _, err := inflateAll(new(Decoder), src); err != test.want {
			t.Errorf("%s: %x, error %v, want %v", test.name, got, err, test.want)
		}
		if _, err := io.ReadAll(flate.NewReader(bytes.NewReader(src))); (err == nil) != (test.want == nil) {
			t.Errorf("%s: the standard library says %v", test.name, err)
		}
	}
}

// packBits returns the bits as bytes, lowest bit first, followed by some zeros.
func packBits(s string) []byte {
	var out []byte
	n := 0
	for _, c := range s {
		if c == ' ' {
			continue
		}
		if n%8 == 0 {
			out = append(out, 0)
		}
		out[n/8] |= byte(c-'0') << (n % 8)
		n++
	}
	return append(out, make([]byte, 8)...)
}

// FuzzInflate decompresses anything, and anything compressed, as the standard library does.
func FuzzInflate(f *testing.F) {
	for _, in := range inflateInputs()[:24] {
		for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, 6} {
			f.Add(deflate(f, level, in))
		}
	}
	z := new(Decoder)
	f.Fuzz(func(t *testing.T, src []byte) {
		got, rest, err := inflateAll(z, src)
		r := bytes.NewReader(src)
		want, wantErr := io.ReadAll(flate.NewReader(r))
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v, the standard library's %v", err, wantErr)
		}
		if err == nil && (!bytes.Equal(got, want) || len(rest) != r.Len()) {
			t.Fatalf("%d bytes and a rest of %d, want %d and %d", len(got), len(rest), len(want), r.Len())
		}
		if got, _, err := inflateAll(z, deflate(t, 1+len(src)%9, src)); err != nil || !bytes.Equal(got, src) {
			t.Fatalf("compressed and decompressed: %d bytes, want %d, error %v", len(got), len(src), err)
		}
	})
}
