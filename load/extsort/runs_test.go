package extsort

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/faultfs"
)

// damageRuns sorts like sortSome, and alters the one run that is made first, before it is read.
// It says whether the sorter noticed.
func damageRuns(t *testing.T, config smallSorter, want []string, alter func(run []byte) []byte) (noticed bool) {
	t.Helper()
	f := faultfs.New()
	s := config.open(t, f)
	for _, kv := range want {
		k, v, _ := bytes.Cut([]byte(kv), []byte("="))
		expect.NoError(t, s.Add(k, v, false))
	}
	expect.NoError(t, s.spill())
	expect.NoError(t, f.Alter(s.runs[0].name, alter))
	var got []string
	err := s.Merge(context.Background(), func(key, value []byte) error {
		got = append(got, string(key)+"="+string(value))
		return nil
	})
	expect.NoError(t, s.Close())
	checkNoRuns(t, f)
	if err == nil && !slices.Equal(got, want) {
		t.Error("damage passes for right")
	}
	if err == nil {
		return false
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v is no corruption", err)
	}
	if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
		t.Error("wrong records were yielded before the damage was found")
	}
	return true
}

var damageConfig = smallSorter{memory: 10_000, frame: 100, maxKey: 10, maxRuns: 2}

func damageRecords() []string {
	var want []string
	for i := range 15 {
		want = append(want, fmt.Sprintf("key%d=%s", 100+i, bytes.Repeat([]byte{byte('a' + i)}, i*i)))
	}
	return want
}

// TestRunFlippedBits: a flipped bit in a run is found, wherever it is.
func TestRunFlippedBits(t *testing.T) {
	want := damageRecords()
	size := 1
	for bit := 0; bit < size*8; bit++ {
		found := damageRuns(t, damageConfig, want, func(run []byte) []byte {
			size = len(run)
			run[bit/8] ^= 1 << (bit % 8)
			return run
		})
		if !found {
			t.Errorf("bit %d of byte %d: not found", bit%8, bit/8)
		}
	}
	if size < 1000 {
		t.Errorf("the run has only %d bytes", size)
	}
}

// TestRunCutShort: a run is not shorter than it was written.
func TestRunCutShort(t *testing.T) {
	want, size := damageRecords(), 1
	for n := 0; n < size; n++ {
		found := damageRuns(t, damageConfig, want, func(run []byte) []byte { size = len(run); return run[:n] })
		if !found {
			t.Errorf("%d of %d bytes: not found", n, size)
		}
	}
}

// TestRunFramesSwapped: a frame that lies where another belongs is damage.
func TestRunFramesSwapped(t *testing.T) {
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("key%d=%090d", 100+i, i))
	}
	found := damageRuns(t, damageConfig, want, func(run []byte) []byte {
		const n = 100 // of damageConfig
		return slices.Concat(run[n:2*n], run[:n], run[2*n:])
	})
	if !found {
		t.Error("not found")
	}
}

// readRun reads all of a run with good checksums, every second value of the large ones included.
func readRun(t *testing.T, content []byte, frame int) error {
	t.Helper()
	mem := faultfs.New()
	write(t, mem, "/run", string(content))
	r := run{name: "/run", size: int64(len(content))}
	for part := range slices.Chunk(content, frame) {
		r.sums = append(r.sums, crc32.Checksum(part, castagnoli))
	}
	rr, err := openRun(context.Background(), mem, r, frame, make([]byte, maxRecordHead+60+frame))
	if err == nil {
		err = rr.next()
	}
	for n := 0; err == nil && !rr.done; n++ {
		if n > len(content) {
			t.Fatal("more records than bytes")
		}
		if n%2 == 0 {
			_, err = rr.value(nil)
		}
		if err == nil {
			err = rr.next()
		}
	}
	return err
}

// TestRunContent: what only a mistake in the writer could bring about is found, too.
func TestRunContent(t *testing.T) {
	large := append(binary.AppendUvarint([]byte{3}, 100<<1), "key"...) // a value that does not fit into the buffer
	large = append(large, bytes.Repeat([]byte("v"), 100)...)
	tests := []struct {
		name    string
		content string
		want    string
	}{
		{"good", "\x03\x0akeyvalue\x01\x01k", ""},
		{"good and large", string(large), ""},
		{"behind a large one", string(large) + "\x03\x0akeyvalue", ""},
		{"one byte", "\x03", "bad record"},
		{"endless number", strings.Repeat("\xff", 20), "bad record"},
		{"no second number", "\x80\x01", "bad record"},
		{"bad second number", "\x01\x80\x80", "bad record"},
		{"key too long", "\x89\x80\x04\x00", "bad record"},
		{"value too long", "\x00\x80\x80\x80\x80\x10", "bad record"},
		{"key cut", "\x04\x00key", "crosses the end of the run"},
		{"value cut", "\x03\x0ckeyvalue", "crosses the end of the run"},
		{"large value cut", string(large[:80]), "crosses the end of the run"},
	}
	for _, tt := range tests {
		err := readRun(t, []byte(tt.content), 64)
		if tt.want == "" {
			expect.NoError(t, err)
		} else if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

// FuzzRun reads runs with good checksums and arbitrary content: they may be anything
// but a panic or an endless loop.
func FuzzRun(f *testing.F) {
	f.Add([]byte("\x03\x0akeyvalue"), uint8(64))
	f.Add(append([]byte("\x03\x90\x03key"), bytes.Repeat([]byte("v"), 200)...), uint8(64))
	f.Add([]byte("\x80\x80\x80\x80\x80\xff\xff\xff\xff\xff"), uint8(0))
	f.Fuzz(func(t *testing.T, content []byte, frame uint8) {
		err := readRun(t, content, int(frame)+1)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%v is no corruption", err)
		}
	})
}
