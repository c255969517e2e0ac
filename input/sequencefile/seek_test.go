package sequencefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"sequins/input/sequencefile"
	"sequins/test/sequencefiles"
)

// numbered returns a file of n records, and its keys.
func numbered(t *testing.T, n int, o sequencefiles.WriterOptions) ([]byte, []string) {
	t.Helper()
	var b bytes.Buffer
	w, err := sequencefiles.NewWriter(&b, o)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf("key-%05d", i))
		if err := w.Append([]byte(keys[i]), bytes.Repeat([]byte{byte(i)}, 20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), keys
}

// From every offset on, what is read is the end of the file from some record on, and its offsets are the file's.
func TestReaderAt(t *testing.T) {
	for _, o := range []sequencefiles.WriterOptions{
		{SyncInterval: 500},
		{Compression: sequencefiles.Record, SyncInterval: 500},
		{Compression: sequencefiles.Block, BlockSize: 700},
		{Compression: sequencefiles.Block, BlockSize: 700, Codec: sequencefiles.SnappyCodec},
	} {
		o.SyncSeed = "x"
		raw, keys := numbered(t, 300, o)
		offsets := map[int64]string{}
		whole, err := sequencefile.NewReader(bytes.NewReader(raw), "f")
		if err != nil {
			t.Fatal(err)
		}
		for whole.Scan() {
			offsets[whole.Offset()] = string(whole.Key())
		}
		last := len(keys) + 1
		for at := 0; at <= len(raw); at += 7 {
			r, err := sequencefile.NewReaderAt(iotest.HalfReader(bytes.NewReader(raw[at:])), whole.Header(), int64(at), "f")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for r.Scan() {
				got = append(got, string(r.Key()))
				if offsets[r.Offset()] == "" || r.Offset() < int64(at) {
					t.Fatalf("from %d: record at %d", at, r.Offset())
				}
			}
			if r.Err() != nil || len(got) > last || !slices.Equal(got, keys[len(keys)-len(got):]) {
				t.Fatalf("%v from %d: %d records after %d, %v", o.Compression, at, len(got), last, r.Err())
			}
			if last = len(got); at > 1000 && at < len(raw)/2 && last == 0 {
				t.Fatalf("%v from %d: no records", o.Compression, at)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// endless reads as zeros.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.n += len(p)
	return len(p), nil
}

func TestReaderAtGivesUp(t *testing.T) {
	zeros := &endless{}
	r, err := sequencefile.NewReaderAt(zeros, sequencefile.Header{Version: 6, Sync: [16]byte{1}}, 0, "f")
	if err != nil || r.Scan() || r.Err() != nil || zeros.n > 5<<20 {
		t.Errorf("%v, %v after %d bytes", err, r.Err(), zeros.n)
	}
	broken := errors.New("broken")
	_, err = sequencefile.NewReaderAt(io.MultiReader(bytes.NewReader(make([]byte, 1000)), iotest.ErrReader(broken)), sequencefile.Header{}, 0, "f")
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}
