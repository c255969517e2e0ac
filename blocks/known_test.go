package blocks

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sequins/test/blocktest"
	"sequins/test/expect"
)

// knownBlock writes a block and returns what a reader of it knows.
func knownBlock(t *testing.T, records []record) (path string, k Known) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "00000.block")
	expect.NoError(t, os.WriteFile(path, buildBlock(t, records, WriterOptions{}), 0o644))
	r, err := Open(path)
	expect.NoError(t, err)
	k = r.Known()
	expect.NoError(t, r.Close())
	return path, k
}

// openKnown opens a block that is known, and must not have been read.
func openKnown(t *testing.T, path string, k Known) *Reader {
	t.Helper()
	r, err := OpenKnown(path, k)
	expect.NoError(t, err)
	t.Cleanup(func() { expect.NoError(t, r.Close()) })
	if r.unopened.Load() == nil {
		t.Fatal("a known block was opened")
	}
	return r
}

// overwrite replaces a file behind the back of everybody: it keeps the time of modification.
func overwrite(t *testing.T, path string, b []byte) {
	t.Helper()
	st, err := os.Stat(path)
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(path, b, 0o644))
	expect.NoError(t, os.Chtimes(path, time.Time{}, st.ModTime()))
}

// TestOpenKnown: a known block is opened at its first use, whatever that is, and once.
func TestOpenKnown(t *testing.T) {
	records := numbered(300)
	path, k := knownBlock(t, records)
	first := records[0].key
	uses := map[string]func(r *Reader) error{
		"Get": func(r *Reader) error {
			v, ok, err := r.Get(first, new(Scratch))
			if err == nil && (!ok || !bytes.Equal(v.Bytes(), records[0].value)) {
				err = errors.New("not found")
			}
			return err
		},
		"GetBatch": func(r *Reader) error {
			var results [1]Result
			r.GetBatch([][]byte{first}, results[:], new(BatchScratch))
			if results[0].Err == nil && !results[0].Found {
				return errors.New("not found")
			}
			return results[0].Err
		},
		"Iter": func(r *Reader) error {
			n, it := 0, r.Iter(nil, nil)
			for it.Next() {
				n++
			}
			if it.Err() == nil && n != len(records) {
				return errors.New("not all records")
			}
			return it.Err()
		},
		"Place": func(r *Reader) error {
			if _, ok := r.Place(first); !ok {
				return errors.New("no place")
			}
			return nil
		},
		"Scrub":      func(r *Reader) error { return r.Scrub(t.Context(), func(int) error { return nil }) },
		"EnsureOpen": (*Reader).EnsureOpen,
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			r := openKnown(t, path, k)
			if r.Known() != k || r.Size() != k.Size || r.Properties().Records != int64(len(records)) {
				t.Errorf("before: %+v, %d bytes, %d records", r.Known(), r.Size(), r.Properties().Records)
			}
			expect.NoError(t, r.Sweep(func(time.Duration) error { return nil }))
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if err := use(r); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if r.unopened.Load() != nil || r.Known() != k || r.Properties().Pages == 0 {
				t.Errorf("after: %+v, %d pages", r.Known(), r.Properties().Pages)
			}
			if n := blocktest.Descriptors(t, filepath.Dir(path)); n > 1 || n > 0 && name == "EnsureOpen" {
				t.Errorf("%d descriptors", n)
			}
		})
	}
}

// TestKnownUnlike: a file of another length or time is opened, and checked, at once.
func TestKnownUnlike(t *testing.T) {
	path, k := knownBlock(t, numbered(300))
	b, err := os.ReadFile(path)
	expect.NoError(t, err)
	overwrite(t, path, b[:len(b)-1])
	if _, err := OpenKnown(path, k); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte less: %v", err)
	}
	expect.NoError(t, os.Remove(path))
	if _, err := OpenKnown(path, k); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	expect.NoError(t, os.WriteFile(path, b, 0o644))
	expect.NoError(t, os.Chtimes(path, time.Time{}, time.UnixMicro(k.ModTime+1)))
	r, err := OpenKnown(path, k)
	expect.NoError(t, err)
	defer r.Close()
	if r.unopened.Load() != nil {
		t.Error("a file of another time is taken for the known one")
	}
	if now := r.Known(); now.ModTime != k.ModTime+1 || now.Footer != k.Footer {
		t.Errorf("%+v, was %+v", now, k)
	}
}

// TestKnownLarge: a block that is mapped is opened at once.
func TestKnownLarge(t *testing.T) {
	path, k := knownBlock(t, makeRecords(rand.New(rand.NewPCG(1, 1)), blocktest.KeyShapes["hex"], 2000, 100))
	st, err := os.Stat(path)
	expect.NoError(t, err)
	if k != (Known{}) || st.Size() <= maxSmall {
		t.Errorf("of a block of %d bytes is known: %+v", st.Size(), k)
	}
}

// TestKnownDamage flips each byte behind the pages: a lookup finds it, and never a wrong answer.
func TestKnownDamage(t *testing.T) {
	records := numbered(40)
	path, k := knownBlock(t, records)
	whole, err := os.ReadFile(path)
	expect.NoError(t, err)
	full, err := Open(path)
	expect.NoError(t, err)
	start := int(full.footer.index.offset)
	expect.NoError(t, full.Close())
	for i := start; i < len(whole); i++ {
		b := bytes.Clone(whole)
		b[i] ^= 0x10
		overwrite(t, path, b)
		r := openKnown(t, path, k)
		for range 2 { // the second attempt is not taken in by what the first has left
			if _, found, err := r.Get(records[7].key, new(Scratch)); found || !errors.Is(err, ErrCorrupt) {
				t.Fatalf("byte %d: found %t, error %v", i, found, err)
			}
		}
	}
	overwrite(t, path, whole)
	if n := blocktest.Descriptors(t, filepath.Dir(path)); n != 0 {
		t.Errorf("%d descriptors", n)
	}
}

// TestKnownReplaced: a whole block in the place of the one that is known does not answer for it, and a block that cannot
// be opened can be once it is back.
func TestKnownReplaced(t *testing.T) {
	records := numbered(40)
	path, k := knownBlock(t, records)
	whole, err := os.ReadFile(path)
	expect.NoError(t, err)
	other := numbered(40)
	for i := range other {
		other[i].value = bytes.ToUpper(other[i].value)
		other[i].value[0]++
	}
	r := openKnown(t, path, k)
	replacement := buildBlock(t, other, WriterOptions{})
	if len(replacement) != len(whole) {
		t.Fatalf("%d bytes, and not %d", len(replacement), len(whole))
	}
	wantCorrupt := func(what string) {
		if _, found, err := r.Get(records[7].key, new(Scratch)); found || !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: found %t, error %v", what, found, err)
		}
	}
	overwrite(t, path, replacement)
	wantCorrupt("another block")
	overwrite(t, path, whole[:50])
	wantCorrupt("a part of it")
	expect.NoError(t, os.Remove(path))
	wantCorrupt("no file")
	expect.NoError(t, os.WriteFile(path, whole, 0o644))
	v, found, err := r.Get(records[7].key, new(Scratch))
	if err != nil || !found || !bytes.Equal(v.Bytes(), records[7].value) {
		t.Errorf("the block itself: found %t, error %v", found, err)
	}
}

// TestKnownBusy: who waits for another goroutine that opens the block on a disk that hangs does not wait for ever.
func TestKnownBusy(t *testing.T) {
	path, k := knownBlock(t, numbered(40))
	synctest.Test(t, func(t *testing.T) {
		r := openKnown(t, path, k)
		turn := r.unopened.Load().turn
		turn <- struct{}{}
		begun := time.Now()
		if err := r.EnsureOpen(); !errors.Is(err, ErrBusy) || time.Since(begun) != readPatience {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		time.AfterFunc(readPatience/2, func() { <-turn })
		if err := r.EnsureOpen(); err != nil {
			t.Errorf("after the other goroutine: %v", err)
		}
	})
}
