package sequencefile

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// TestDeterministic writes the same twice: with the same seed the files are equal, without one they are not.
func TestDeterministic(t *testing.T) {
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		opts.Metadata = map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}
		first := writeFile(t, opts, smallRecords())
		if !bytes.Equal(first, writeFile(t, opts, smallRecords())) {
			t.Error("two files differ that should not")
		}
		opts.SyncSeed = "another"
		if bytes.Equal(first, writeFile(t, opts, smallRecords())) {
			t.Error("the seed changes nothing")
		}
		opts.SyncSeed = ""
		if bytes.Equal(writeFile(t, opts, nil), writeFile(t, opts, nil)) {
			t.Error("the sync marker is not random")
		}
	})
}

// TestSyncInterval counts the sync markers of records.
func TestSyncInterval(t *testing.T) {
	var records []record
	for range 1000 {
		records = append(records, record{make([]byte, 32), make([]byte, 60)}) // 108 bytes each with all lengths
	}
	for interval, want := range map[int]int{0: 1, 1: 1000, 1000: 100, 1 << 20: 0} {
		opts := sequencefiles.WriterOptions{SyncInterval: interval, SyncSeed: "test"}
		file := writeFile(t, opts, records)
		sync := file[len(writeFile(t, opts, nil))-syncSize:][:syncSize]
		if got := bytes.Count(file, sync) - 1; got < want*9/10 || got > want {
			t.Errorf("interval %d: %d sync markers, want about %d", interval, got, want)
		}
		if got, err := readFile(file); len(got) != len(records) || err != nil {
			t.Errorf("interval %d: %d records, error %v", interval, len(got), err)
		}
	}
}

func TestWriterOrder(t *testing.T) {
	w, err := sequencefiles.NewWriter(io.Discard, sequencefiles.WriterOptions{})
	expect.NoError(t, err)
	expect.NoError(t, w.Close())
	for name, err := range map[string]error{"Append": w.Append(nil, nil), "Close": w.Close()} {
		if !errors.Is(err, sequencefiles.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

func TestBadWriterOptions(t *testing.T) {
	for _, test := range []struct {
		opts sequencefiles.WriterOptions
		want string
	}{
		{sequencefiles.WriterOptions{Compression: sequencefiles.Block, Codec: "com.example.Codec"}, `"com.example.Codec" is not supported`},
		{sequencefiles.WriterOptions{Codec: SnappyCodec}, "without compression"},
		{sequencefiles.WriterOptions{Compression: 3}, "no such compression: 3"},
		{sequencefiles.WriterOptions{SyncInterval: -1}, "must not be negative"},
		{sequencefiles.WriterOptions{BlockSize: -1}, "must not be negative"},
	} {
		if _, err := sequencefiles.NewWriter(io.Discard, test.opts); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
}

// TestWriteErrors lets writing fail after some bytes: the error comes out, and stays.
func TestWriteErrors(t *testing.T) {
	full := errors.New("disk full")
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		opts.BlockSize = 1
		size := len(writeFile(t, opts, smallRecords()))
		for limit := 0; limit < size; limit += 17 {
			w, err := sequencefiles.NewWriter(&limitedWriter{limit, full}, opts)
			for _, r := range smallRecords() {
				if err == nil {
					err = appendAlone(w, r)
				}
			}
			if !errors.Is(err, full) {
				t.Fatalf("failing after %d bytes: error %v", limit, err)
			}
			if w != nil && !errors.Is(w.Close(), full) {
				t.Fatalf("failing after %d bytes: closed without the error", limit)
			}
		}
		if w, err := sequencefiles.NewWriter(&limitedWriter{10, nil}, opts); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("%v, error %v from a writer that writes less than it should", w, err)
		}
	})
}

// limitedWriter accepts a number of bytes, and then returns its error.
type limitedWriter struct {
	left int
	err  error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return len(p), nil
	}
	n := w.left
	w.left = 0
	return n, w.err
}
