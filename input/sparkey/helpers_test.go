package sparkey_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"sequins/input/sparkey"
	"sequins/test/expect"
	"sequins/test/sparkeylog"
)

// An entry is one put or delete, with bytes of its own.
type entry struct {
	key, value []byte
	deleted    bool
}

// file is an io.WriteSeeker in memory.
type file struct {
	b   []byte
	pos int
}

func (f *file) Write(p []byte) (int, error) {
	if need := f.pos + len(p); need > len(f.b) {
		f.b = append(f.b, make([]byte, need-len(f.b))...)
	}
	copy(f.b[f.pos:], p)
	f.pos += len(p)
	return len(p), nil
}

func (f *file) Seek(offset int64, whence int) (int64, error) {
	if whence != io.SeekStart {
		return 0, fmt.Errorf("seek from %d", whence)
	}
	f.pos = int(offset)
	return offset, nil
}

func write(t testing.TB, o sparkeylog.WriterOptions, entries []entry) []byte {
	t.Helper()
	var f file
	w, err := sparkeylog.NewWriter(&f, o)
	expect.NoError(t, err)
	for _, e := range entries {
		if e.deleted {
			err = w.Delete(e.key)
		} else {
			err = w.Put(e.key, e.value)
		}
		expect.NoError(t, err)
	}
	expect.NoError(t, w.Close())
	return f.b
}

// read scans everything and copies it.
func read(r io.Reader) ([]entry, error) {
	rd, err := sparkey.NewReader(r, "test.spl")
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	var all []entry
	for rd.Scan() {
		all = append(all, entry{bytes.Clone(rd.Key()), bytes.Clone(rd.Value()), rd.Deleted()})
	}
	return all, rd.Err()
}

func same(t testing.TB, got, want []entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i].key, want[i].key) || !bytes.Equal(got[i].value, want[i].value) || got[i].deleted != want[i].deleted {
			t.Fatalf("entry %d: key %.40q, %d bytes of value, deleted %v; want %.40q, %d, %v",
				i, got[i].key, len(got[i].value), got[i].deleted, want[i].key, len(want[i].value), want[i].deleted)
		}
	}
}

// entries returns n entries with values up to size bytes; every seventh is a delete, some have neither key nor value.
func entries(n, size int) []entry {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	all := make([]entry, n)
	for i := range all {
		all[i].key = fmt.Appendf(nil, "key-%03d", rnd.IntN(1000))
		if i%11 == 5 {
			all[i].key = []byte{}
		}
		if all[i].deleted = i%7 == 3; all[i].deleted {
			continue
		}
		all[i].value = make([]byte, rnd.IntN(size+1))
		for j := range all[i].value {
			all[i].value[j] = byte(rnd.IntN(4)) // compresses to about a quarter
		}
	}
	return all
}

// options is every compression with blocks smaller and larger than an entry.
var options = map[string]sparkeylog.WriterOptions{
	"none":        {FileID: 7},
	"snappy-10":   {Compression: sparkey.Snappy, BlockSize: 10},
	"snappy-100":  {Compression: sparkey.Snappy, BlockSize: 100},
	"snappy-4096": {Compression: sparkey.Snappy},
	"zstd-50":     {Compression: sparkey.Zstd, BlockSize: 50},
	"zstd-65536":  {Compression: sparkey.Zstd, BlockSize: 65536},
}
