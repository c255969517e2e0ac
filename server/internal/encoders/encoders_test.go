package encoders_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"sequins/server/internal/encoders"
)

// decode returns what encoded is, which may end after a flush.
func decode(t *testing.T, coding string, encoded []byte) string {
	t.Helper()
	var r io.Reader
	var err error
	if coding == "zstd" {
		var d *zstd.Decoder
		if d, err = zstd.NewReader(bytes.NewReader(encoded), zstd.WithDecoderMaxWindow(8<<20)); err == nil { // the limit of browsers
			defer d.Close()
		}
		r = d
	} else {
		r, err = gzip.NewReader(bytes.NewReader(encoded))
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil && err != io.ErrUnexpectedEOF {
		t.Fatalf("%s: %v", coding, err)
	}
	return string(b)
}

// Encoders are reused, also after a write that has failed, and after a flush all can be decoded.
func TestEncoders(t *testing.T) {
	var pool encoders.Pool
	for _, coding := range encoders.Codings {
		for i := range 3 {
			var out bytes.Buffer
			e := pool.Get(coding, &out)
			first, second := strings.Repeat(fmt.Sprint("first ", i), 20_000), strings.Repeat("second ", 10)
			fmt.Fprint(e, first)
			if err := e.Flush(); err != nil {
				t.Fatal(err)
			}
			if got := decode(t, coding, out.Bytes()); got != first {
				t.Errorf("%s: %d bytes after a flush, want %d", coding, len(got), len(first))
			}
			fmt.Fprint(e, second)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if got := decode(t, coding, out.Bytes()); got != first+second {
				t.Errorf("%s: %d bytes, want %d", coding, len(got), len(first+second))
			}
			if out.Len() > len(first)/20 {
				t.Errorf("%s: %d bytes of %d", coding, out.Len(), len(first))
			}
			pool.Put(coding, e)

			failing := pool.Get(coding, failingWriter{})
			fmt.Fprint(failing, first)
			if failing.Close() == nil {
				t.Errorf("%s: no error of the writer", coding)
			}
			pool.Put(coding, failing)
		}
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestLimit(t *testing.T) {
	var pool encoders.Pool
	var all []encoders.Encoder
	for range encoders.Max {
		all = append(all, pool.Get("gzip", io.Discard))
	}
	if e := pool.Get("zstd", io.Discard); e != nil || all[encoders.Max-1] == nil {
		t.Errorf("encoder %d is %v", encoders.Max+1, e)
	}
	pool.Put("gzip", all[0])
	if e := pool.Get("zstd", io.Discard); e == nil {
		t.Error("no encoder after one was returned")
	}
}
