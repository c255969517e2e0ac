package blocks

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"sequins/test/expect"
)

// checkCopy hashes a file in pieces, opens it, and checks it as partition 3 of 7, where all keys but one belong.
func checkCopy(t *testing.T, b []byte, elsewhere string) error {
	t.Helper()
	hash := NewHash(int64(len(b)))
	for rest := b; len(rest) > 0; rest = rest[min(len(rest), 1000):] {
		if n, err := hash.Write(rest[:min(len(rest), 1000)]); n != min(len(rest), 1000) || err != nil {
			t.Fatal(n, err)
		}
	}
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "flipped.block")
	if err != nil {
		return err
	}
	return r.CheckCopy(t.Context(), hash, 3, 7, func(key []byte, partitions int) int {
		if partitions != 7 {
			t.Fatalf("the partition of %d is asked for", partitions)
		}
		if string(key) == elsewhere {
			return 5
		}
		return 3
	})
}

// CheckCopy finds a flipped bit in every byte of a file, also where nothing is read, and says which page it is in.
func TestCopyFlipped(t *testing.T) {
	for _, c := range []Compression{None, FSST, Zstd} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			b, _ := small(t, c)
			expect.NoError(t, checkCopy(t, b, ""))
			r := openBytes(t, b)
			step := 1 + len(b)/3000
			for at := 0; at < len(b); at += step {
				b[at] ^= 1 << (at % 8)
				err := checkCopy(t, b, "")
				b[at] ^= 1 << (at % 8)
				if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "flipped.block") {
					t.Fatalf("byte %d of %d: %v", at, len(b), err)
				}
				damaged := (*CorruptError)(nil)
				if l := r.index.Location(0); errors.As(err, &damaged) && int64(at) < l.Offset()+int64(l.Length()) && damaged.Page != 0 {
					t.Fatalf("byte %d of page 0: %v", at, err)
				}
			}
		})
	}
}

// Bytes of no page are part of the hash.
func TestCopyPadding(t *testing.T) {
	var records []record
	for i := range 200 {
		records = append(records, record{[]byte{byte(i)}, bytes.Repeat([]byte{byte(i)}, 300)})
	}
	b := buildBlock(t, records, WriterOptions{Partition: 3, Partitions: 7})
	at := bytes.Index(b, make([]byte, 64))
	for covered := coverage(t, b); covered[at]; at++ {
	}
	b[at] = 1
	if err := checkCopy(t, b, ""); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "hash of its bytes") {
		t.Errorf("a byte between pages: %v", err)
	}
	if err := openFile(t, b).Verify(t.Context()); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "hash of its bytes") {
		t.Errorf("Verify of it: %v", err)
	}
}

// What is no whole block of the partition is refused.
func TestCopyOfAnother(t *testing.T) {
	b, records := small(t, FSST)
	for n := range b {
		if err := checkCopy(t, b[:n], ""); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(b), err)
		}
	}
	another := buildBlock(t, records, WriterOptions{Partition: 2, Partitions: 7})
	for text, err := range map[string]error{
		"belongs to partition 5":              checkCopy(t, b, "z-large"),
		"is partition 2 of 7, and not 3 of 7": checkCopy(t, another, ""),
	} {
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	expect.NoError(t, checkCopy(t, buildBlock(t, nil, WriterOptions{Partition: 3, Partitions: 7}), ""))
}

// Hash depends on the bytes of a block alone.
func TestHash(t *testing.T) {
	b, records := small(t, None)
	same := buildBlock(t, records, WriterOptions{Compression: None, BlockSize: MinBlockSize, Partition: 3, Partitions: 7})
	another := buildBlock(t, records, WriterOptions{Compression: None, BlockSize: MinBlockSize, Partition: 4, Partitions: 7})
	hash := openBytes(t, b).Hash()
	if len(hash) != 32 || hash != openBytes(t, same).Hash() || hash == openBytes(t, another).Hash() {
		t.Errorf("%s", hash)
	}
}
