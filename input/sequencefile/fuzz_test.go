package sequencefile

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"sequins/internal/unpack"
	"sequins/test/sequencefiles"
)

// FuzzReader reads arbitrary files: no panic, bounded memory, no error except ErrCorrupt, and the same records for any
// size of reads.
func FuzzReader(f *testing.F) {
	for _, opts := range modes() {
		for i, c := range classes {
			opts.KeyClass, opts.ValueClass, opts.SyncSeed, opts.BlockSize, opts.SyncInterval = c[0], c[1], "fuzz", 100*i, 100*i
			f.Add(writeFile(f, opts, smallRecords()))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		before := allocated()
		got, err := readFile(file)
		// zstd's window is the largest allocation before any data is decompressed.
		if n := allocated() - before; n > unpack.MaxWindow+64<<20+2048*uint64(len(file)) {
			t.Errorf("%d bytes allocated for a file of %d", n, len(file))
		}
		if err != nil {
			if c := wantCorrupt(t, err); c.Offset > int64(len(file)) {
				t.Errorf("error %v", err)
			}
		}
		if len(file) > 4<<10 {
			return
		}
		again, errAgain := readSlowly(iotest.OneByteReader(bytes.NewReader(file)))
		if diff := sameRecords(again, got); diff != "" || (err == nil) != (errAgain == nil) {
			t.Errorf("byte by byte: %s, error %v, before %v", diff, errAgain, err)
		}
	})
}

func readSlowly(in io.Reader) ([]record, error) {
	r, err := NewReader(in, "test")
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return scan(r), r.Err()
}

// FuzzRoundTrip cuts data into records, writes them in one of all modes and reads them again.
func FuzzRoundTrip(f *testing.F) {
	for i := range modes() {
		f.Add(uint8(i), uint8(i), uint16(100*i), []byte("\x03\x04keyvalu\x00\x00\x05\x00hello\x00\x02xy\xff\xff"))
	}
	f.Fuzz(func(t *testing.T, mode, class uint8, size uint16, data []byte) {
		opts := modes()[int(mode)%len(modes())]
		c := classes[int(class)%len(classes)]
		opts.KeyClass, opts.ValueClass = c[0], c[1]
		opts.BlockSize, opts.SyncInterval, opts.SyncSeed = int(size), int(size), "fuzz"
		want := cutRecords(data)
		file := writeFile(t, opts, want)
		got, err := readFile(file)
		if diff := sameRecords(got, want); diff != "" || err != nil {
			t.Fatalf("%s: %s, error %v", modeName(opts), diff, err)
		}
		for _, n := range []int{len(file) - 1, len(file) / 2} { // a part of a header is never valid
			got, _ := readFile(file[:n])
			if len(got) > len(want) || sameRecords(got, want[:len(got)]) != "" {
				t.Fatalf("%s, cut at %d of %d: wrong records", modeName(opts), n, len(file))
			}
		}
	})
}

// cutRecords splits data into records: a byte for the length of a key, one for that of a value, then both.
func cutRecords(data []byte) (records []record) {
	take := func(n int) (b []byte) {
		n = min(n, len(data))
		b, data = data[:n], data[n:]
		return b
	}
	for len(data) >= 2 {
		lengths := take(2)
		key := take(int(lengths[0]))
		records = append(records, record{key, bytes.Repeat(take(int(lengths[1])), 1+int(lengths[0]))})
	}
	return records
}

// FuzzDecoders decompresses anything with each codec.
func FuzzDecoders(f *testing.F) {
	for i, codec := range sequencefiles.Codecs() {
		f.Add(uint8(i), encodeAll(f, codec, []byte("hello, hello, hello")))
		f.Add(uint8(i), encodeAll(f, codec, nil))
	}
	f.Fuzz(func(t *testing.T, i uint8, src []byte) {
		decode := codecs[sequencefiles.Codecs()[int(i)%len(sequencefiles.Codecs())]]()
		before := allocated()
		out, err := decode(nil, src, MaxExpanded)
		if err == nil && len(out) > MaxExpanded {
			t.Errorf("%d bytes come out", len(out))
		}
		if n := allocated() - before; n > unpack.MaxWindow+64<<20+2048*uint64(len(src)) {
			t.Errorf("%d bytes allocated for %d", n, len(src))
		}
	})
}
