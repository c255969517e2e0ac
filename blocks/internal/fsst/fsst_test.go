package fsst

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// model decodes as the format says, one code after the other.
func model(t *Table, src []byte) ([]byte, error) {
	out := []byte{}
	for i := 0; i < len(src); i++ {
		if src[i] == escape {
			if i++; i == len(src) {
				return nil, ErrData
			}
			out = append(out, src[i])
			continue
		}
		var b [maxLength]byte
		binary.LittleEndian.PutUint64(b[:], t.symbols[src[i]])
		out = append(out, b[:t.lengths[src[i]]]...)
	}
	return out, nil
}

// encodeModel encodes as AppendAll does, piece by piece, with bounds that are checked.
func encodeModel(t *testing.T, e *Encoder, s []byte) (out []byte) {
	t.Helper()
	for piece := range slices.Chunk(s, pieceSize) {
		padded := slices.Concat(piece, e.padding[:])
		for i := 0; i < len(piece); {
			m := e.find(binary.LittleEndian.Uint64(padded[i:]))
			if i+m.length() > len(piece) {
				t.Fatalf("a symbol of %d bytes reaches beyond the end of %.100q", m.length(), piece)
			}
			if out = append(out, byte(m)); m == escaped {
				out = append(out, piece[i])
			}
			i += m.length()
		}
	}
	return out
}

// makeStrings makes strings of one kind.
func makeStrings(rng *rand.Rand, kind string, n int) [][]byte {
	var all [][]byte
	for range n {
		var s []byte
		switch kind {
		case "text":
			for range rng.IntN(30) {
				s = append(s, []string{"user", "name", "\":\"", "https://", "example.com/", "0"}[rng.IntN(6)]...)
			}
		case "random":
			for range rng.IntN(2000) {
				s = append(s, byte(rng.Uint32()))
			}
		case "zeros":
			s = make([]byte, rng.IntN(1500))
		case "two":
			for range rng.IntN(40) {
				s = append(s, byte(rng.IntN(2))*255)
			}
		case "all": // all bytes, the rarest of them at the end of what is frequent
			s = append(s, "abcdefgq"...)
			for range 1 + rng.IntN(2) {
				for _, b := range rng.Perm(256) {
					if b != 'q' {
						s = append(s, byte(b))
					}
				}
			}
		case "long":
			s = bytes.Repeat(fmt.Appendf(nil, "%x,", rng.Uint64()), rng.IntN(500))
		}
		all = append(all, s)
	}
	return all
}

func TestRoundTrip(t *testing.T) {
	for _, kind := range []string{"text", "random", "zeros", "two", "long", "all"} {
		rng := rand.New(rand.NewPCG(1, 1))
		sample := makeStrings(rng, kind, 20)
		e := Train(sample)
		stored := e.AppendTo(nil)
		table, rest, err := Parse(append(stored, "rest"...))
		if err != nil || string(rest) != "rest" || *table != e.Table {
			t.Fatalf("%s: the table is not read as it was written: %v", kind, err)
		}
		// The beginnings of symbols end where the padding begins.
		var beginnings [][]byte
		for code := range e.count {
			symbol := binary.LittleEndian.AppendUint64(nil, e.symbols[code])
			for n := range e.lengths[code] {
				beginnings = append(beginnings, symbol[:n])
			}
		}
		testRoundTrip(t, e, table, beginnings)
		// Also strings that the table was not made for.
		for _, other := range []string{kind, "text", "random", "zeros"} {
			testRoundTrip(t, e, table, makeStrings(rng, other, 100))
		}
	}
}

func testRoundTrip(t *testing.T, e *Encoder, table *Table, all [][]byte) {
	t.Helper()
	ends := make([]int, len(all))
	n := 0
	for i, s := range all {
		n += len(s)
		ends[i] = n
	}
	encoded := e.AppendAll([]byte("before"), bytes.Join(all, nil), ends)[len("before"):]
	if len(encoded) > 2*n {
		t.Errorf("%d bytes became %d", n, len(encoded))
	}
	begin := 0
	for i, s := range all {
		one := encoded[begin:ends[i]]
		begin = ends[i]
		got, err := table.Append([]byte("before"), one, len(s))
		if err != nil || string(got) != "before"+string(s) {
			t.Fatalf("%.100q is %.100q: %v", s, got, err)
		}
		if want, err := model(table, one); err != nil || !bytes.Equal(want, s) {
			t.Fatalf("%.100q is %.100q by the format: %v", s, want, err)
		}
		if want := encodeModel(t, e, s); !bytes.Equal(want, one) {
			t.Fatalf("%.100q is encoded to %.100q, and not %.100q", s, one, want)
		}
		if alone := e.AppendAll(nil, s, []int{len(s)}); !bytes.Equal(alone, one) {
			t.Fatalf("%.100q is encoded otherwise beside others", s)
		}
		if _, err := table.Append(nil, one, len(s)-1); len(s) > 0 && !errors.Is(err, ErrData) {
			t.Fatalf("a string of %d bytes is within a limit of one less: %v", len(s), err)
		}
	}
}

func TestSameSampleSameSymbols(t *testing.T) {
	sample := makeStrings(rand.New(rand.NewPCG(2, 2)), "text", 100)
	first := Train(sample)
	Train(makeStrings(rand.New(rand.NewPCG(3, 3)), "random", 10)) // leaves other counts behind
	if Train(sample).Table != first.Table {
		t.Error("the same sample gave other symbols")
	}
}

func TestShrinks(t *testing.T) {
	all := makeStrings(rand.New(rand.NewPCG(4, 4)), "text", 200)
	e := Train(all[:100])
	raw, encoded := 0, 0
	for _, s := range all[100:] {
		raw += len(s)
		encoded += len(e.AppendAll(nil, s, []int{len(s)}))
	}
	if encoded > raw/4 {
		t.Errorf("%d bytes of repeated words became %d", raw, encoded)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":                {},
		"no lengths":             {2, 1},
		"a symbol without bytes": {1, 0},
		"a long symbol":          {1, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		"bytes missing":          {2, 2, 3, 'a', 'b', 'c', 'd'},
	} {
		if _, _, err := Parse(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzDecode decodes any bytes by any table: the answer is that of the model or an error, and nothing is written behind the
// slice that it is appended to.
func FuzzDecode(f *testing.F) {
	e := Train(makeStrings(rand.New(rand.NewPCG(5, 5)), "text", 50))
	f.Add(e.AppendTo(nil), []byte("\xff\xff\xff"), 10, 3)
	f.Add([]byte{0}, []byte{1, 2, 255, 4, 5}, 0, 0)
	f.Add([]byte{1, 8, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}, bytes.Repeat([]byte{0}, 100), 800, 33)
	f.Fuzz(func(t *testing.T, stored, src []byte, limit, room int) {
		table, _, err := Parse(stored)
		if err != nil {
			return
		}
		limit, room = limit&(1<<16-1), room&(1<<10-1)
		memory := slices.Repeat([]byte{0xa5}, room+64)
		got, err := table.Append(memory[:0:room], src, limit)
		if !bytes.Equal(memory[room:], slices.Repeat([]byte{0xa5}, 64)) {
			t.Fatal("bytes behind the slice have changed")
		}
		want, wantErr := model(table, src)
		if wantErr == nil && len(want) > limit {
			wantErr = ErrData
		}
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("got %.100q, %v; want %.100q, %v", got, err, want, wantErr)
		}
	})
}

// FuzzEncode encodes any strings by symbols for others.
func FuzzEncode(f *testing.F) {
	f.Add([]byte("abcabcabcabc"), []byte("abcabcab"), 3)
	f.Fuzz(func(t *testing.T, sample, s []byte, n int) {
		if len(sample) > 32<<10 || len(s) > 1<<16 {
			return
		}
		e := Train([][]byte{sample, s[:len(s)/2]})
		cut := len(s)
		if n > 0 {
			cut = n % (len(s) + 1)
		}
		testRoundTrip(t, e, &e.Table, [][]byte{s[:cut], s[cut:], sample, nil, s})
	})
}
