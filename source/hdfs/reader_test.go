package hdfs

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sequins/source"
	"sequins/test/expect"
)

// play runs a test with a file on datanodes that behave in some way.
func play(t *testing.T, size int, run func(t *testing.T, c *cluster, s *Source, f *file), datanodes ...datanode) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFile(size, len(datanodes))
		c := &cluster{nodes: map[string]func(net.Conn){"a:1": f.namenode()}}
		for i, d := range datanodes {
			c.nodes[fmt.Sprintf("d%d:1", i)] = d.serve(f)
		}
		s := c.source(t)
		s.namenodes = []string{"a:1"}
		run(t, c, s, f)
		c.serve.Wait()
	})
}

func (s *Source) read(t *testing.T, offset int64) ([]byte, error) {
	t.Helper()
	f, err := s.Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{Offset: offset})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// wantFile reads the file from some offsets.
func wantFile(t *testing.T, s *Source, f *file) {
	t.Helper()
	for _, offset := range []int{0, 1, 255, 512, blockSize - 1, blockSize, blockSize + 1, len(f.data) - 1, len(f.data), len(f.data) + 1} {
		if offset < 0 {
			continue
		}
		b, err := s.read(t, int64(offset))
		if want := f.data[min(offset, len(f.data)):]; err != nil || !bytes.Equal(b, want) {
			t.Errorf("from %d on: %d bytes, want %d, %v", offset, len(b), len(want), err)
		}
	}
}

func TestRead(t *testing.T) {
	for _, size := range []int{0, 1, 511, 512, 513, blockSize, maxRead, maxRead + 1, 10*maxRead + 12345} {
		play(t, size, func(t *testing.T, c *cluster, s *Source, f *file) { wantFile(t, s, f) }, datanode{})
	}
}

// What a reader needs of the namenode it asks for at the beginning.
func TestNamenodeIsLeft(t *testing.T) {
	play(t, 20*maxRead, func(t *testing.T, c *cluster, s *Source, f *file) {
		r, err := s.Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
		expect.NoError(t, err)
		defer r.Close()
		if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if n := c.connected("a:1"); n != 0 {
			t.Errorf("there are %d connections to the namenode", n)
		}
		c.set("a:1", nil)
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Error(err)
		}
		dialled := c.dialled()
		if n := len(slices.DeleteFunc(dialled, func(a string) bool { return a != "a:1" })); n != 1 {
			t.Errorf("the namenode was dialled %d times", n)
		}
	}, datanode{})
}

func TestDatanodesThatFail(t *testing.T) {
	everywhere := func(int) bool { return true }
	for name, nodes := range map[string][]datanode{
		"one breaks off":         {{cut: 70_000}, {}},
		"all break off":          {{cut: 70_000}, {cut: 90_000}},
		"the only one does":      {{cut: 70_000}},
		"one refuses":            {{refuses: true}, {}},
		"one is silent":          {{nothing: true}, {}},
		"one trickles":           {{slow: 250 * time.Millisecond}, {}},
		"one has spoilt bytes":   {{spoilt: everywhere}, {}},
		"each has spoilt others": {{spoilt: func(i int) bool { return i%150_000 == 3000 }}, {spoilt: func(i int) bool { return i%150_000 == 80_000 }}},
		"a block's last byte":    {{spoilt: func(i int) bool { return i%blockSize == blockSize-1 }}, {}},
		"one ends too early":     {{short: true}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 7*blockSize/2, func(t *testing.T, c *cluster, s *Source, f *file) {
				s.timeout = 300 * time.Millisecond
				b, err := s.read(t, 100)
				if err != nil || !bytes.Equal(b, f.data[100:]) {
					t.Errorf("%d bytes that are not the file's %d, %v", len(b), len(f.data)-100, err)
				}
			}, nodes...)
		})
	}
}

// Permanent failures are reported in time, and data read before them is correct.
// No response of a datanode crashes the process.
func TestDatanodesThatFailForGood(t *testing.T) {
	const wrong = blockSize + 5000
	for name, tt := range map[string]struct {
		node datanode
		says string
	}{
		"spoilt":    {datanode{spoilt: func(i int) bool { return i == wrong }}, "invalid checksum"},
		"refusing":  {datanode{refuses: true}, "read failed"},
		"silent":    {datanode{nothing: true}, "timeout"},
		"trickling": {datanode{slow: 50 * time.Millisecond}, "timeout"},
		// Whether the end is met by the request or by the answer is a matter of luck.
		"breaking off at once": {datanode{cut: 10}, "last from the datanode"},
		"too short":            {datanode{short: true}, "datanode"},
		"a negative length":    {datanode{header: func(b []byte) []byte { return append(b, 0x25, 0, 0, 0, 0x80) }}, "malformed response"},
		"no length":            {datanode{header: func(b []byte) []byte { return b }}, "no data over 3 connections"},
		"no header":            {datanode{header: func([]byte) []byte { return nil }}, ""},
		"chunks of nothing":    {datanode{chunk: 1 << 40}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 3*blockSize, func(t *testing.T, c *cluster, s *Source, f *file) {
				s.timeout, s.retryFor = 100*time.Millisecond, 3*time.Second
				start := time.Now()
				b, err := s.read(t, 0)
				wantError(t, err, nil, "read hdfs://a:1/data/db/1/part-00000: gave up after", tt.says)
				if !bytes.HasPrefix(f.data, b) {
					t.Errorf("%d bytes that are not the file's", len(b))
				}
				if tt.says == "invalid checksum" && len(b) != wrong/chunkSize*chunkSize && len(b) < blockSize {
					t.Errorf("%d bytes, and %d is the first wrong one", len(b), wrong)
				}
				took(t, start, 0, 2*s.retryFor)
			}, tt.node)
		})
	}
}

// A file that changes is noticed whenever there is something to ask for.
func TestChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(f *file)
		class  error
		says   string
	}{
		"replaced": {func(f *file) { f.id, f.data = 2, slices.Repeat([]byte{1}, len(f.data)) }, source.ErrChanged, "listed with 786432 bytes"},
		"grown":    {func(f *file) { f.data = append(f.data, 1) }, source.ErrChanged, "now 786433"},
		"touched":  {func(f *file) { f.mtime += 1000 }, source.ErrChanged, "of 2023-11-14 22:13:20"},
		"shrunk":   {func(f *file) { f.data = f.data[:10] }, source.ErrChanged, "now 10 of"},
		"vanished": {func(f *file) { f.gone = true }, fs.ErrNotExist, "deleted after it was opened"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 3*maxRead, func(t *testing.T, c *cluster, s *Source, f *file) {
				r, err := s.Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
				expect.NoError(t, err)
				defer r.Close()
				got := make([]byte, 1000)
				if _, err := io.ReadFull(r, got); err != nil {
					t.Fatal(err)
				}
				old := f.data
				f.change(tt.change)
				c.set("d0:1", nil) // the next block is not to be had
				time.AfterFunc(time.Second, func() { c.set("d0:1", datanode{}.serve(f)) })
				rest, err := io.ReadAll(r)
				wantError(t, err, tt.class, tt.says)
				if !bytes.HasPrefix(old, append(got, rest...)) {
					t.Error("bytes of two files")
				}
			}, datanode{})
			if tt.class != source.ErrChanged {
				return
			}
			play(t, 3*maxRead, func(t *testing.T, c *cluster, s *Source, f *file) {
				r, err := s.Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
				expect.NoError(t, err)
				defer r.Close()
				f.change(tt.change) // before the namenode is asked where it is
				b, err := io.ReadAll(r)
				wantError(t, err, tt.class, tt.says)
				if len(b) > 0 {
					t.Errorf("%d bytes of another file", len(b))
				}
			}, datanode{})
		})
	}
}
