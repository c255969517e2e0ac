package avro

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"sequins/internal/render"
)

const seekSchema = `{"type":"record","name":"r","fields":[{"name":"k","type":"string"},{"name":"v","type":"long"}]}`

// numbered returns a file of n records in blocks of 20.
func numbered(t testing.TB, n int, meta map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := ocf.NewWriter(&b, avro.MustParse(seekSchema), ocf.WithBlockCount(20), ocf.WithMetadata(meta))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.Encode(map[string]any{"k": fmt.Sprintf("key-%05d", i), "v": int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// From every offset on, what is read is the end of the file from some block on.
func TestReaderAt(t *testing.T) {
	paths := render.Paths{Key: "k", Value: "v"}
	raw := numbered(t, 500, map[string][]byte{"written.by": bytes.Repeat([]byte("x"), 5000)})
	want, err := scan(bytes.NewReader(raw), paths)
	if err != nil {
		t.Fatal(err)
	}
	head, err := NewReader(bytes.NewReader(raw), "f", paths)
	if err != nil {
		t.Fatal(err)
	}
	last := len(want) + 1
	for at := bytes.Index(raw, head.file.sync[:]); at <= len(raw); at += 5 {
		r, err := head.From(iotest.HalfReader(bytes.NewReader(raw[at:])))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for r.Scan() {
			got = append(got, string(r.Key())+"="+string(r.Value()))
		}
		if r.Err() != nil || len(got) > last || !slices.Equal(got, want[len(want)-len(got):]) {
			t.Fatalf("from %d: %d records after %d, %v", at, len(got), last, r.Err())
		}
		if last = len(got); at < len(raw)/2 && last == 0 {
			t.Fatalf("from %d: no records", at)
		}
	}
}

func TestReaderAtGivesUp(t *testing.T) {
	zeros := &counter{r: iotest.HalfReader(zeroReader{})}
	head, err := NewReader(bytes.NewReader(numbered(t, 1, nil)), "f", render.Paths{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := head.From(zeros)
	if err != nil || r.Scan() || r.Err() != nil || zeros.n > 5<<20 {
		t.Errorf("%v, %v after %d bytes", err, r.Err(), zeros.n)
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }
