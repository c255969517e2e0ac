package sequencefile

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"io"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// smallFile is a file of smallRecords with several sync markers or blocks.
func smallFile(t *testing.T, opts sequencefiles.WriterOptions) []byte {
	opts.SyncInterval, opts.BlockSize = 60, 60
	return writeFile(t, opts, smallRecords())
}

// boundaries are the places in an undamaged file where it could as well end: behind the header, each record, block and
// sync marker of records.
func boundaries(t *testing.T, file []byte) []int64 {
	r, err := NewReader(bytes.NewReader(file), "test")
	expect.NoError(t, err)
	defer r.Close()
	ends := []int64{r.in.Offset()}
	for r.Scan() {
		ends = append(ends, r.Offset())
		if r.header.Compression != Block {
			ends = append(ends, r.in.Offset())
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	if r.header.Compression == Block {
		// A block's offset is that of its sync marker, where the previous block ends.
		return append(ends, int64(len(file)))
	}
	return ends
}

// TestTruncated cuts files off at every byte.
func TestTruncated(t *testing.T) {
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		file := smallFile(t, opts)
		want, err := readFile(file)
		expect.NoError(t, err)
		ends := boundaries(t, file)
		for n := range file {
			got, err := readFile(file[:n])
			if len(got) > len(want) || sameRecords(got, want[:len(got)]) != "" {
				t.Fatalf("cut at %d: wrong records: %s", n, sameRecords(got, want))
			}
			if slices.Contains(ends, int64(n)) {
				if err != nil {
					t.Fatalf("cut at %d, a boundary: %v", n, err)
				}
				continue
			}
			if err == nil {
				t.Fatalf("cut at %d of %d: no error after %d records", n, len(file), len(got))
			}
			if c := wantCorrupt(t, err); c.Offset > int64(n) {
				t.Fatalf("cut at %d: error at offset %d", n, c.Offset)
			}
		}
	})
}

// TestReadErrors makes reading fail at every byte: the error is never treated as damage or as the end.
func TestReadErrors(t *testing.T) {
	broken := errors.New("connection reset")
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		file := smallFile(t, opts)
		want := smallRecords()
		for n := range len(file) + 1 {
			for _, failure := range []error{broken, io.ErrUnexpectedEOF} {
				r, err := NewReader(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(failure)), "the file")
				if err == nil {
					if got := scan(r); len(got) > len(want) || sameRecords(got, want[:len(got)]) != "" {
						t.Fatalf("failing at %d: wrong records", n)
					}
					err = r.Err()
					r.Close()
				}
				if !errors.Is(err, failure) || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "the file") {
					t.Fatalf("failing at %d: error %v", n, err)
				}
			}
		}
	})
}

// checked are codecs that protect every bit that matters by a checksum.
func checked(codec string) bool { return codec != SnappyCodec && codec != Lz4Codec }

// TestFlippedBits flips every bit of files: no panic, no memory without bounds, and where everything is covered by
// checksums, no wrong record without an error.
func TestFlippedBits(t *testing.T) {
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		file := smallFile(t, opts)
		want := smallRecords()
		start := int(boundaries(t, file)[0])
		for i := range file {
			for bit := range 8 {
				damaged := bytes.Clone(file)
				damaged[i] ^= 1 << bit
				before := allocated()
				got, err := readFile(damaged)
				if n := allocated() - before; n > 24<<20 {
					t.Fatalf("bit %d of byte %d: %d bytes allocated", bit, i, n)
				}
				if err != nil {
					wantCorrupt(t, err)
				} else if opts.Compression == sequencefiles.Block && checked(opts.Codec) && i >= start {
					if diff := sameRecords(got, want); diff != "" {
						t.Fatalf("bit %d of byte %d: no error, but %s", bit, i, diff)
					}
				}
			}
		}
	})
}

// allocated is the number of bytes that have been allocated so far by the whole process.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// TestHostileLengths announces lengths that are impossible, or far more than what follows.
func TestHostileLengths(t *testing.T) {
	int32s := func(v ...int32) (b []byte) {
		for _, x := range v {
			b = binary.BigEndian.AppendUint32(b, uint32(x))
		}
		return b
	}
	sync := md5.Sum([]byte("test"))
	escape := "\xff\xff\xff\xff" + string(sync[:])
	big := "\x8c\x7f\xff\xff\xf0" // vint of almost 2 GiB
	tests := []struct {
		name        string
		compression Compression
		body        string
		offset      int64 // of the error, from the end of the header on
		reason      string
	}{
		{"record of 2 GiB", None, string(int32s(1<<31-16, 4, 0)), 0, "ends within a record of 2147483632 bytes"},
		{"record larger than Java's", None, string(int32s(1<<31-1, 4, 0)), 0, "impossible record length"},
		{"negative record", None, string(int32s(-2, 0)), 0, "impossible record length -2"},
		{"key larger than record", None, string(int32s(4, 5, 0, 0)), 0, "key of 5 bytes in a record of 4"},
		{"negative key", None, string(int32s(4, -1, 0, 0)), 0, "key of -1 bytes"},
		{"no room for a BytesWritable", None, string(int32s(4, 2, 0, 0)), 0, "a key of 2 bytes that is not one org"},
		{"length in the key", None, string(int32s(8, 4, 1, 0)), 0, "a key of 4 bytes that is not one org"},
		{"length in the value", None, string(int32s(8, 4, 0, 1)), 0, "a value of 4 bytes that is not one org"},
		{"foreign sync marker", None, "\xff\xff\xff\xff" + strings.Repeat("x", 16), 0, "sync marker is not that"},
		{"end in a sync marker", None, escape[:19], 0, "ends within a sync marker"},
		{"end after three bytes", None, "\x00\x00\x00", 0, "ends within the length"},
		{"end in the key length", None, string(int32s(0)) + "\x00\x00", 0, "ends within a record"},
		{"RECORD value of 2 GiB", Record, string(int32s(1<<31-16, 4, 0)), 0, "ends within a record"},
		{"RECORD value is no zlib", Record, string(int32s(8, 4, 0, 0)), 0, "value of 4 bytes: zlib: invalid header"},
		{"RECORD value is empty", Record, string(int32s(4, 4, 0)), 0, "a value of 0 bytes that is not one org"},
		{"block without sync marker", Block, string(int32s(1, 2, 3, 4, 5, 6)), 0, "does not begin with a sync marker"},
		{"block with foreign sync marker", Block, "\xff\xff\xff\xff" + strings.Repeat("x", 16), 0, "not that of the header"},
		{"end after the sync marker", Block, escape, 0, "in the length of its number of records"},
		{"negative number of records", Block, escape + "\xff", 0, "impossible length: number of records"},
		{"records of 9 bytes", Block, escape + "\x88\x7f\xff\xff\xff\xff\xff\xff\xff", 0, "impossible length"},
		{"column of 2 GiB", Block, escape + "\x01" + big, 0, "key lengths of the block: 2147483632 bytes, more than"},
		{"negative column", Block, escape + "\x01\x87", 0, "impossible length: key lengths"},
		{"2 Gi records in nothing", Block, escape + big + "\x00\x00\x00\x00", 0, "key lengths of the block: fewer bytes"},
		{"empty block, then garbage", Block, escape + "\x00\x00\x00\x00\x00x", 25, "ends within the sync marker of a block"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			header := writeFile(t, sequencefiles.WriterOptions{Compression: sequencefiles.Compression(test.compression), SyncSeed: "test"}, nil)
			before := allocated()
			got, err := readFile(append(header, test.body...))
			if n := allocated() - before; n > 1<<20 {
				t.Errorf("%d bytes allocated", n)
			}
			c := wantCorrupt(t, err)
			if len(got) > 0 || c.Offset != int64(len(header))+test.offset || !strings.Contains(c.Reason, test.reason) {
				t.Fatalf("%d records and %#v (header of %d bytes), want reason %q", len(got), c, len(header), test.reason)
			}
		})
	}
}

// TestBadReaders are readers that break the rules of io.Reader.
func TestBadReaders(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"nothing, for ever": readerFunc(func(p []byte) (int, error) { return 0, nil }),
		"negative count":    readerFunc(func(p []byte) (int, error) { return -1, nil }),
		"count too large":   readerFunc(func(p []byte) (int, error) { return len(p) + 1, nil }),
	} {
		if _, err := NewReader(r, "test"); err == nil || errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
