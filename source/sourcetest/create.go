package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"sequins/source"
)

// create writes a file of version 1 of db, in pieces.
func create(t *testing.T, c source.Creator, name string, data []byte) {
	t.Helper()
	w := must(c.Create(t.Context(), "db", "1", name, int64(len(data))))(t)
	for rest := data; len(rest) > 0; {
		n := min(len(rest), 100_003)
		if _, err := w.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort after Commit: %v", err)
	}
}

func testCreate(t *testing.T, p Place) {
	src := p.Source(t)
	c, ok := src.(source.Creator)
	if !ok {
		t.Skip("it cannot be written")
	}
	large := make([]byte, 19<<20) // of several parts in S3, and of packets in HDFS
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(large)
	want := map[string][]byte{"part-00000.block": large, "part-00001.block": []byte("small"), "part-00002.block": nil, "_SUCCESS": nil, "_BLOCKS.json": []byte("{}\n"),
		"part-00003.block": large[:8<<20]}
	for name, data := range want {
		create(t, c, name, data)
	}
	create(t, c, "part-00001.block", []byte("replaced"))
	want["part-00001.block"] = []byte("replaced")
	for name, data := range want {
		f := must(src.Open(t.Context(), "db", "1", source.File{Name: name}, source.ReadOptions{}))(t)
		got := must(io.ReadAll(f))(t)
		if err := f.Close(); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes of %d, or others: %v", name, len(got), len(data), err)
		}
	}
	contents := must(src.Contents(t.Context(), "db", "1"))(t)
	if len(contents.Files) != 4 || len(contents.Hidden) != 2 {
		t.Errorf("it left something behind: %v", contents)
	}
}

// testCreateAborted: a file that is not committed is never there.
func testCreateAborted(t *testing.T, p Place) {
	src := p.Source(t)
	c, ok := src.(source.Creator)
	if !ok {
		t.Skip("it cannot be written")
	}
	create(t, c, "part-00000.block", []byte("stays"))
	piece := make([]byte, 9<<20)
	ctx, cancel := context.WithCancel(t.Context())
	for what, end := range map[string]func(source.FileWriter) error{
		"aborted": func(w source.FileWriter) error { return errors.Join(w.Abort(), fs.ErrInvalid) },
		"shorter": source.FileWriter.Commit,
		"cancelled": func(w source.FileWriter) error {
			cancel()
			_, err := w.Write(piece)
			return errors.Join(err, w.Commit(), w.Abort())
		},
	} {
		ctx := ctx
		if what != "cancelled" {
			ctx = t.Context()
		}
		w := must(c.Create(ctx, "db", "1", "part-00001.block", 20<<20))(t)
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
		if err := end(w); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	contents := must(src.Contents(t.Context(), "db", "1"))(t)
	if len(contents.Files) != 1 || len(contents.Hidden) != 0 {
		t.Errorf("it left something behind: %v", contents)
	}
}

func testCreateNames(t *testing.T, p Place) {
	c, ok := p.Source(t).(source.Creator)
	if !ok {
		t.Skip("it cannot be written")
	}
	for _, bad := range [][3]string{{"db", "1", ""}, {"db", "1", "a/b"}, {"db", "1", "../b"}, {"db", "1", ".."}, {"db", "..", "b"}, {"..", "1", "b"}, {"db", "", "b"}, {"", "", "_b"},
		{"db", "1", source.UnfinishedName("b", "x")}} {
		if _, err := c.Create(t.Context(), bad[0], bad[1], bad[2], 0); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := c.Remove(t.Context(), "db", "1", "../../x"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a file outside of the version was removed: %v", err)
	}
}

func testRemove(t *testing.T, p Place) {
	src := p.Source(t)
	c, ok := src.(source.Creator)
	if !ok {
		t.Skip("it cannot be written")
	}
	ctx := t.Context()
	if err := c.Remove(ctx, "db", "1", "part-00000.block"); err != nil {
		t.Errorf("what is not there: %v", err)
	}
	p.Put(t, "db/2/part-0", []byte("another version"))
	var all []string
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "_d"} {
		all = append(all, name)
		wg.Go(func() { create(t, c, name, []byte(strings.Repeat(name, 1000))) })
	}
	wg.Wait()
	if err := c.Remove(ctx, "db", "1", "a", "not there"); err != nil {
		t.Error(err)
	}
	if left := files(t, src, "db", "1"); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
	if err := c.Remove(ctx, "db", "1", all...); err != nil {
		t.Error(err)
	}
	equal(t, "versions", must(source.Versions(ctx, src, "db"))(t), []string{"2"})
}
