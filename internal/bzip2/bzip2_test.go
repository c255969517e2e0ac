package bzip2

import (
	"bytes"
	stdbzip2 "compress/bzip2"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsnet/compress/bzip2"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/noise"
)

// bzip2Inputs are what is hard for some stage: long runs, runs of exactly the lengths where their coding changes, one
// symbol and all, more than a block of 900,000 bytes.
func bzip2Inputs() [][]byte {
	rng := rand.New(rand.NewPCG(11, 12))
	inputs := [][]byte{nil, {0}, {255}, []byte("a"), []byte("abcabcabc")}
	for _, n := range []int{3, 4, 5, 8, 9, 254, 255, 256, 258, 259, 260, 511, 1000, 70_000, 1_000_000} {
		inputs = append(inputs, bytes.Repeat([]byte("x"), n), append(bytes.Repeat([]byte("x"), n), 'y'))
	}
	var all []byte
	for i := range 1000 {
		all = append(all, byte(i))
	}
	random := make([]byte, 1_000_000)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	fibonacci := []byte("a") // the hardest for sorting, and long codes
	for i, n := 0, 1; len(fibonacci) < 200_000; i, n = i+1, n*8/5+1 {
		fibonacci = append(fibonacci, bytes.Repeat([]byte{byte(i)}, n)...)
	}
	rng.Shuffle(len(fibonacci), func(i, j int) { fibonacci[i], fibonacci[j] = fibonacci[j], fibonacci[i] })
	return append(inputs, all, random, noise.Bytes(rng, 950_000), fibonacci, bytes.Repeat([]byte("0123456789"), 30_000))
}

// TestBzip2 decodes what another package writes, and compares with the standard library.
func TestBzip2(t *testing.T) {
	d := new(Decoder)
	for i, in := range bzip2Inputs() {
		for _, level := range []int{1, 9} {
			if level == 1 && len(in) > 500_000 {
				continue
			}
			var b bytes.Buffer
			w, err := bzip2.NewWriter(&b, &bzip2.WriterConfig{Level: level})
			expect.NoError(t, err)
			w.Write(in)
			w.Close()
			got, err := decodeAll(d, b.Bytes())
			if err != nil || !bytes.Equal(got, in) {
				t.Fatalf("input %d, level %d: %d bytes, want %d, error %v", i, level, len(got), len(in), err)
			}
			std, err := io.ReadAll(stdbzip2.NewReader(&b))
			if err != nil || !bytes.Equal(got, std) {
				t.Fatalf("input %d, level %d: not what the standard library gives (%v)", i, level, err)
			}
		}
	}
}

// TestBzip2Damage cuts streams off at every byte and flips every bit of them.
func TestBzip2Damage(t *testing.T) {
	d := new(Decoder)
	for _, in := range []string{"", "a", strings.Repeat("hello, hello, world ", 20) + strings.Repeat("x", 600)} {
		src := compress(t, []byte(in))
		for n := 1; n < len(src); n++ {
			if _, err := decodeAll(d, src[:n]); err != io.ErrUnexpectedEOF {
				t.Fatalf("cut at %d of %d: error %v", n, len(src), err)
			}
		}
		for i := range 8 * len(src) {
			damaged := bytes.Clone(src)
			damaged[i/8] ^= 1 << (i % 8)
			if got, err := decodeAll(d, damaged); err == nil && string(got) != in {
				t.Fatalf("bit %d flipped: wrong bytes", i)
			}
		}
	}
}

// TestBzip2Refused changes a stream of bzip2 1.0.8 into some that are not to be believed.
func TestBzip2Refused(t *testing.T) {
	const hello = "QlpoOTFBWSZTWU7s6DYAAAJRgAAQQAAGRJCAIAAxBkxBAaeppYC7lDH4u5IpwoSCd2dBsA=="
	src, err := base64.StdEncoding.DecodeString(hello)
	expect.NoError(t, err)
	if got, err := decodeAll(new(Decoder), src); string(got) != "hello world\n" || err != nil {
		t.Fatalf("%q, error %v", got, err)
	}
	for _, test := range []struct {
		name string
		at   int
		to   byte
		want error
	}{
		{"bzip1", 2, '0', errMagic},
		{"level 0", 3, '0', errMagic},
		{"level ten", 3, '9' + 1, errMagic},
		{"no block", 4, 0, errMagic},
		{"checksum of the block", 10, 0, errChecksum},
		{"origin behind the end", 15, 0xff, errData},
		{"no symbols", 18, 0, errTables},
		{"checksum of the stream", len(src) - 2, 0, errChecksum},
	} {
		damaged := bytes.Clone(src)
		damaged[test.at] = test.to
		if got, err := decodeAll(new(Decoder), damaged); err != test.want {
			t.Errorf("%s: %q, error %v, want %v", test.name, got, err, test.want)
		}
	}
}

// TestBzip2Randomised reads the randomised blocks that Hadoop's bzip2 in Java wrote. That they are randomised shows in the
// bit behind magic and checksum of a block.
func TestBzip2Randomised(t *testing.T) {
	want := bytes.Repeat([]byte("abcd"), 50_000/4)
	for i, src := range randomised(t) {
		if src[14]>>7 == 0 {
			t.Errorf("value %d is not randomised", i)
		}
		got, err := decodeAll(new(Decoder), src)
		if err != nil || !bytes.Equal(got[len(got)-len(want):], want) { // in front is the length that Text has
			t.Errorf("value %d: %d bytes, error %v", i, len(got), err)
		}
		src[14] ^= 0x80
		if _, err := decodeAll(new(Decoder), src); err != errChecksum {
			t.Errorf("value %d, taken as not randomised: error %v", i, err)
		}
	}
}

// randomised are the compressed values of a fixture, each with a randomised block.
func randomised(t testing.TB) (values [][]byte) {
	t.Helper()
	f := harness.FixtureByName(t, "randomised-record-bzip2-java")
	file, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
	expect.NoError(t, err)
	const key = "\x09key-00000"
	for i := range f.Meta.Records {
		head := bytes.Index(file, fmt.Appendf(nil, "\x09key-%05d", i)) - 8
		length := int(binary.BigEndian.Uint32(file[head:]))
		values = append(values, file[head+8+len(key):head+8+length])
	}
	return values
}

// FuzzBzip2 decompresses anything, and anything compressed. The standard library takes some streams with incomplete
// codes that neither bzip2 itself nor this package take, but where both give something, it has to be the same.
func FuzzBzip2(f *testing.F) {
	for _, in := range bzip2Inputs()[:12] {
		f.Add(compress(f, in))
	}
	f.Add(randomised(f)[0])
	d := new(Decoder)
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := decodeAll(d, src)
		std, stdErr := io.ReadAll(stdbzip2.NewReader(bytes.NewReader(src)))
		if err == nil && stdErr == nil && !bytes.Equal(got, std) {
			t.Fatalf("%d bytes, and %d from the standard library", len(got), len(std))
		}
		if got, err := decodeAll(d, compress(t, src)); err != nil || !bytes.Equal(got, src) {
			t.Fatalf("compressed and decompressed: %d bytes, want %d, error %v", len(got), len(src), err)
		}
	})
}

// decodeAll decompresses src.
func decodeAll(d *Decoder, src []byte) ([]byte, error) { return d.Decode(nil, src, 1<<30) }

// compress compresses src with another package.
func compress(t testing.TB, src []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := bzip2.NewWriter(&b, nil)
	expect.NoError(t, err)
	w.Write(src)
	w.Close()
	return b.Bytes()
}
