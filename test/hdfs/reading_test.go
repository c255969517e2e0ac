//go:build integration

package hdfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sequins/source"
	"sequins/source/hdfs"
	"sequins/test/expect"
	"sequins/test/noise"
)

// testErrors: each error has the right class and a message that names the cause.
func testErrors(t *testing.T, c *cluster) {
	d := c.newDir()
	d.Put(t, "db/1/part-00000", []byte("x"))
	d.Put(t, "secret/1/part-00000", []byte("x"))
	expect.NoError(t, c.writer.Chmod(d.root+"/secret", 0o700))
	t.Setenv("HADOOP_USER_NAME", "stranger")
	s := c.open(t, d.root, nil)
	_, err := source.Versions(t.Context(), s, "secret")
	says(t, err, "list hdfs://"+c.namenode+d.root+"/secret", "user=stranger", "access=READ_EXECUTE")
	expect.Error(t, "listing what may not be listed", err, fs.ErrPermission)
	if _, err = s.Open(t.Context(), "secret", "1", source.File{Name: "part-00000"}, source.ReadOptions{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("opening what may not be opened: %v", err)
	}
	for _, name := range []string{"part-00000/data", "a:b", "absent"} {
		if _, err = s.Open(t.Context(), "db", "1", source.File{Name: name}, source.ReadOptions{}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("opening %s: %v", name, err)
		}
	}
	if _, err = source.Versions(t.Context(), s, "absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("listing what is not there: %v", err)
	}
	_, err = s.Open(t.Context(), "db", "1", source.File{Name: "..data"}, source.ReadOptions{})
	expect.Error(t, "a name that begins with dots", err, fs.ErrNotExist)
	d.Mkdir(t, "db/1/dir")
	_, err = s.Open(t.Context(), "db", "1", source.File{Name: "dir"}, source.ReadOptions{})
	says(t, err, "not a regular file")
}

// blocks lists the files that the datanodes keep blocks in.
func (c *cluster) blocks(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(c.Root, "dfs", "data"), func(p string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), "blk_") && !strings.HasSuffix(e.Name(), ".meta") {
			found[p] = true
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed under our eyes
		}
		return err
	})
	expect.NoError(t, err)
	return found
}

// put writes a file and returns where the datanodes keep it.
func (d dir) put(t *testing.T, name string, data []byte) []string {
	t.Helper()
	before := d.blocks(t)
	d.Put(t, name, data)
	var mine []string
	want := 2 * ((len(data) + 1<<20 - 1) >> 20) // blocks of 1 MiB, each twice
	expect.Eventually(t, "every block is there twice", func() bool {
		mine = nil
		for p := range d.blocks(t) {
			if !before[p] && strings.Contains(p, "/finalized/") {
				mine = append(mine, p)
			}
		}
		return len(mine) >= want
	})
	return mine
}

func gone(paths []string) bool {
	n := 0
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			n++
		}
	}
	return n == 0
}

// testFileChanges: a file that is another in the middle of a read is an error, and no byte of the other is handed out.
func testFileChanges(t *testing.T, c *cluster) {
	const size = 4 << 20
	for name, tt := range map[string]struct {
		change func(t *testing.T, d dir)
		all    bool // blocks go
		want   error
		says   string
	}{
		"vanished": {func(t *testing.T, d dir) { d.Remove(t, "db/1/part-00000") }, true, fs.ErrNotExist, "the file was deleted after it was opened"},
		"replaced": {func(t *testing.T, d dir) { d.Put(t, "db/1/part-00000", noise.Random(2, size)) }, true, source.ErrChanged, "listed with 4194304 bytes"},
		"shrunk": {func(t *testing.T, d dir) {
			if _, err := c.writer.Truncate(d.root+"/db/1/part-00000", 1<<20); err != nil {
				t.Fatal(err)
			}
		}, false, source.ErrChanged, "now 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.newDir()
			data := noise.Random(1, size)
			blocks := d.put(t, "db/1/part-00000", data)
			f, err := d.open(t, d.root, nil).Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
			expect.NoError(t, err)
			defer f.Close()
			got := make([]byte, 100_000)
			if _, err := io.ReadFull(f, got); err != nil {
				t.Fatal(err)
			}
			tt.change(t, d)
			if tt.all {
				expect.Eventually(t, "the blocks have gone", func() bool { return gone(blocks) })
			} else {
				expect.Eventually(t, "most blocks have gone", func() bool {
					n := 0
					for _, p := range blocks {
						if _, err := os.Stat(p); err == nil {
							n++
						}
					}
					return n <= 2
				})
			}
			rest, err := io.ReadAll(f)
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			says(t, err, tt.says, d.Source(t).Path("db", "1")+"/part-00000")
			if got = append(got, rest...); !bytes.HasPrefix(data, got) {
				t.Errorf("%d bytes are not the beginning of the file", len(got))
			}
			if _, again := f.Read(got); again != err {
				t.Errorf("after %v, reading gives %v", err, again)
			}
		})
	}
}

// A file that is replaced after it was opened, before anything was read of it, must not be read as if it were the first.
func testReplacedBeforeReading(t *testing.T, c *cluster) {
	d := c.newDir()
	d.Put(t, "db/1/part-00000", noise.Random(1, 1000))
	f, err := d.open(t, d.root, nil).Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
	expect.NoError(t, err)
	defer f.Close()
	d.Put(t, "db/1/part-00000", noise.Random(2, 1000))
	if b, err := io.ReadAll(f); len(b) > 0 || !errors.Is(err, source.ErrChanged) {
		t.Errorf("read %d bytes, %v", len(b), err)
	}
}

// spoil changes a byte in the middle of each file.
func spoil(t *testing.T, paths []string) {
	t.Helper()
	for _, p := range paths {
		b, err := os.ReadFile(p)
		expect.NoError(t, err)
		b[len(b)-len(b)/3-1] ^= 0x40
		expect.NoError(t, os.WriteFile(p, b, 0o644))
	}
}

// testBadReplicas: a replica that is damaged on the disk of a datanode is read from another; if that is damaged, too,
// the read fails.
func testBadReplicas(t *testing.T, c *cluster) {
	d := c.newDir()
	data := noise.Random(3, 4<<20+100)
	seen := map[string]bool{}
	var once, twice []string // one replica of each block, and the other
	for _, p := range d.put(t, "db/1/part-00000", data) {
		if block := filepath.Base(p); seen[block] {
			twice = append(twice, p)
		} else {
			seen[block] = true
			once = append(once, p)
		}
	}
	spoil(t, once)
	s := d.open(t, d.root, func(o *hdfs.Options) { o.RetryFor = 5 * time.Second })
	read := func() ([]byte, error) {
		f, err := s.Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
		expect.NoError(t, err)
		defer f.Close()
		return io.ReadAll(f)
	}
	if b, err := read(); err != nil || !bytes.Equal(b, data) {
		t.Errorf("with one good replica of each block: %d bytes that are not the file's, %v", len(b), err)
	}
	spoil(t, twice)
	b, err := read()
	says(t, err, "invalid checksum", "attempts")
	if !bytes.HasPrefix(data, b) {
		t.Errorf("without a good replica, %d bytes that are not the file's", len(b))
	}
}

func testErasureCoded(t *testing.T, c *cluster) {
	d := c.newDir()
	d.Mkdir(t, "db/1")
	c.Do(t, "dfs ecpolicy=XOR-2-1-1024k dir="+d.root+"/db/1")
	c.Do(t, "dfs write="+d.root+"/db/1/part-00000 bytes=100000")
	_, err := d.open(t, d.root, nil).Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
	says(t, err, "erasure-coded", "db/1/part-00000")
}

// testClosing: closing a reader ends its goroutines in every state.
func testClosing(t *testing.T, c *cluster) {
	d := c.newDir()
	d.Put(t, "db/1/part-00000", noise.Random(4, 8<<20))
	s := d.open(t, d.root, nil)
	leaks := goleak.IgnoreCurrent()
	for _, n := range []int{0, 1, 100, 1 << 20, 8 << 20} {
		f, err := s.Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
		expect.NoError(t, err)
		if _, err := io.ReadFull(f, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := f.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("reading what was closed: %v", err)
		}
		expect.Error(t, "closing it again", f.Close(), fs.ErrClosed)
	}
	goleak.VerifyNone(t, leaks)

	ctx, cancel := context.WithCancel(t.Context())
	f, err := s.Open(ctx, "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
	expect.NoError(t, err)
	if _, err := io.ReadFull(f, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	cancel() // and it is never closed
	goleak.VerifyNone(t, leaks)
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("reading after the context: %v", err)
	}
}
