package sequencefile

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// classes are pairs of key and value classes; the last is one whose bytes are passed through.
var classes = [][2]string{
	{BytesWritable, BytesWritable},
	{Text, Text},
	{Text, BytesWritable},
	{"com.example.Key", "com.example.Value"},
}

func TestRoundTrip(t *testing.T) {
	many, large := manyRecords(), largeRecords()
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		if opts.Codec == BZip2Codec { // its writer is slow
			roundTrip(t, opts, large[:5])
			roundTrip(t, opts, many[:290])
			return
		}
		roundTrip(t, opts, large)
		for _, c := range classes {
			opts.KeyClass, opts.ValueClass = c[0], c[1]
			roundTrip(t, opts, many)
		}
	})
}

func roundTrip(t *testing.T, opts sequencefiles.WriterOptions, records []record) {
	t.Helper()
	got, err := readFile(writeFile(t, opts, records))
	if diff := sameRecords(got, records); diff != "" || err != nil {
		t.Fatalf("%s, %s: %s, error %v", opts.KeyClass, opts.ValueClass, diff, err)
	}
}

// TestSmallReads reads through readers that return little at a time, or data together with the end.
func TestSmallReads(t *testing.T) {
	records := smallRecords()
	readers := map[string]func(io.Reader) io.Reader{
		"one byte":      iotest.OneByteReader,
		"half":          iotest.HalfReader,
		"data with EOF": iotest.DataErrReader,
		"now and then nothing": func(r io.Reader) io.Reader {
			return &stutterer{r: r}
		},
	}
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		file := writeFile(t, opts, records)
		for name, wrap := range readers {
			r, err := NewReader(wrap(bytes.NewReader(file)), "test")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := scan(r)
			if diff := sameRecords(got, records); diff != "" || r.Err() != nil {
				t.Fatalf("%s: %s, error %v", name, diff, r.Err())
			}
			r.Close()
		}
	})
}

// stutterer returns nothing, without an error, every other time.
type stutterer struct {
	r    io.Reader
	last bool
}

func (s *stutterer) Read(p []byte) (int, error) {
	if s.last = !s.last; s.last {
		return 0, nil
	}
	return s.r.Read(p)
}

// TestHeaderRoundTrip checks that what a Writer was given comes back, and metadata too.
func TestHeaderRoundTrip(t *testing.T) {
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		opts.KeyClass, opts.ValueClass = Text, "com.example.Value"
		opts.Metadata = map[string]string{"": "empty key", "b": "", "schema": string(bytes.Repeat([]byte("x"), 300))}
		r, err := NewReader(bytes.NewReader(writeFile(t, opts, nil)), "test")
		expect.NoError(t, err)
		defer r.Close()
		h := r.Header()
		if h.Version != 6 || h.KeyClass != Text || h.ValueClass != "com.example.Value" || h.Compression != Compression(opts.Compression) ||
			h.Codec != opts.Codec || h.Sync == [16]byte{} {
			t.Fatalf("header %+v", h)
		}
		if len(h.Metadata) != 3 || h.Metadata[""] != "empty key" || h.Metadata["b"] != "" || len(h.Metadata["schema"]) != 300 {
			t.Fatalf("metadata %q", h.Metadata)
		}
		if r.Scan() || r.Err() != nil {
			t.Fatalf("a record in an empty file, or %v", r.Err())
		}
	})
}

// TestReuse reads files of different modes in sequence, and closes some early, so that decoders are pooled in every
// state.
func TestReuse(t *testing.T) {
	records := smallRecords()
	for range 3 {
		eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
			opts.BlockSize = 1 // a block for each record
			file := writeFile(t, opts, records)
			r, err := NewReader(bytes.NewReader(file), "test")
			expect.NoError(t, err)
			r.Scan()
			expect.NoError(t, r.Close())
			if r.Err() != nil {
				t.Fatalf("closing gave %v", r.Err())
			}
			if r.Scan() || !errors.Is(r.Err(), errClosed) {
				t.Fatalf("a closed reader gave %q, error %v", r.Key(), r.Err())
			}
			expect.NoError(t, r.Close())
			damaged := bytes.Clone(file)
			damaged[len(damaged)-20]++
			readFile(damaged)
			got, err := readFile(file)
			if diff := sameRecords(got, records); diff != "" || err != nil {
				t.Fatalf("%s, error %v", diff, err)
			}
		})
	}
}

// appendAlone writes a record with a sync marker behind it, or in a block of its own.
func appendAlone(w *sequencefiles.Writer, r record) error {
	if err := w.Append(r.key, r.value); err != nil {
		return err
	}
	return w.Sync()
}

// TestOffset checks where records are said to be.
func TestOffset(t *testing.T) {
	records := smallRecords()
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		var out bytes.Buffer
		w, err := sequencefiles.NewWriter(&out, opts)
		expect.NoError(t, err)
		var want []int64
		for _, r := range records {
			if opts.Compression == sequencefiles.Block {
				want = append(want, w.Position())
			}
			expect.NoError(t, appendAlone(w, r))
		}
		r, err := NewReader(bytes.NewReader(out.Bytes()), "test")
		expect.NoError(t, err)
		defer r.Close()
		if opts.Compression != sequencefiles.Block {
			marker := append([]byte{0xff, 0xff, 0xff, 0xff}, r.header.Sync[:]...)
			want = append(want, int64(bytes.Index(out.Bytes(), r.header.Sync[:])+syncSize))
			for i := range out.Len() {
				if bytes.HasPrefix(out.Bytes()[i:], marker) {
					want = append(want, int64(i+len(marker)))
				}
			}
		}
		for i := 0; r.Scan(); i++ {
			if r.Offset() != want[i] {
				t.Fatalf("record %d is said to be at %d, want %d", i, r.Offset(), want[i])
			}
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
	})
}

// TestSyncMarkers puts sync markers where Hadoop's Writer does when asked for them, or after appending to a file: behind
// the header, one after the other, at the end.
func TestSyncMarkers(t *testing.T) {
	for _, c := range []sequencefiles.Compression{sequencefiles.None, sequencefiles.Record} {
		opts := sequencefiles.WriterOptions{Compression: c, SyncSeed: "test"}
		header := writeFile(t, opts, nil)
		marker := append([]byte{0xff, 0xff, 0xff, 0xff}, header[len(header)-syncSize:]...)
		file := slices.Concat(header, marker)
		for _, r := range smallRecords() {
			file = slices.Concat(file, marker, marker, writeFile(t, opts, []record{r})[len(header):])
		}
		file = append(file, marker...)
		got, err := readFile(file)
		if diff := sameRecords(got, smallRecords()); diff != "" || err != nil {
			t.Errorf("%v: %s, error %v", c, diff, err)
		}
	}
}
