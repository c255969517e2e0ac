package local

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"sequins/source"
	"sequins/test/harness"
)

// sumsOf is a .crc file for content.
func sumsOf(content string, chunk int) string {
	b := binary.BigEndian.AppendUint32([]byte("crc\x00"), uint32(chunk))
	for len(content) > 0 {
		n := min(chunk, len(content))
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE([]byte(content[:n])))
		content = content[n:]
	}
	return string(b)
}

func TestChecksums(t *testing.T) {
	const content = "0123456789abcdef0123"
	good := sumsOf(content, 8)
	tests := map[string]struct {
		content, sums string
		offset        int64
		want          string // in the error; "" for none
	}{
		"right":                    {content, good, 0, ""},
		"chunks that end the file": {content[:16], sumsOf(content[:16], 8), 0, ""},
		"one chunk":                {content, sumsOf(content, 1<<20), 0, ""},
		"an empty file":            {"", sumsOf("", 8), 0, ""},
		"a byte of the first":      {"0123_56789abcdef0123"[:16] + content[16:], good, 0, "offset 0: "},
		"a byte of the second":     {strings.Replace(content, "d", "D", 1), good, 0, "offset 8: "},
		"a byte of the rest":       {content[:19] + "4", good, 0, "offset 16: "},
		"cut off":                  {content[:18], good, 0, "offset 16: "},
		"cut off between two":      {content[:16], good, 0, "offset 16: "},
		"longer":                   {content + "4567", good, 0, "offset 16: "},
		"longer by a chunk":        {content + strings.Repeat("x", 12), sumsOf(content+"xxxx", 8), 0, "offset 24: "},
		"not from the start":       {"x" + content[1:], good, 3, ""},
		"not checksums":            {content, "crc", 0, ""},
		"not checksums either":     {content, "crc\x01\x00\x00\x00\x08abcd", 0, ""},
		"chunks of nothing":        {content, "crc\x00\x00\x00\x00\x00abcd", 0, ""},
		"chunks of less":           {content, "crc\x00\xff\x00\x00\x00abcd", 0, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			put(t, root, "db/1/part-0", tt.content)
			put(t, root, "db/1/.part-0.crc", tt.sums)
			src, err := New(root)
			if err != nil {
				t.Fatal(err)
			}
			for _, slow := range []bool{false, true} {
				f, err := src.Open(t.Context(), "db", "1", source.File{Name: "part-0"}, source.ReadOptions{Offset: tt.offset})
				if err != nil {
					t.Fatal(err)
				}
				var r io.Reader = f
				if slow {
					r = iotest.OneByteReader(f)
				}
				got, err := io.ReadAll(r)
				if cerr := f.Close(); cerr != nil {
					t.Error(cerr)
				}
				if tt.want == "" && (err != nil || string(got) != tt.content[tt.offset:]) {
					t.Errorf("%q, %v", got, err)
				}
				if tt.want != "" && (!errors.Is(err, source.ErrCorrupt) || !strings.Contains(err.Error(), filepath.Join(root, "db/1/part-0")+": "+tt.want)) {
					t.Errorf("%v does not say %s", err, tt.want)
				}
			}
		})
	}
}

// The name of a file of checksums may be longer than the file system allows: then there is none.
func TestChecksumsOfALongName(t *testing.T) {
	root, name := t.TempDir(), strings.Repeat("p", 255)
	put(t, root, "db/1/"+name, "content")
	src, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	f, err := src.Open(t.Context(), "db", "1", source.File{Name: name}, source.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); string(got) != "content" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func put(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The checksums that Hadoop wrote hold for its files, and not for others.
func TestChecksumsByHadoop(t *testing.T) {
	f := harness.FixtureByName(t, "hidden-crc")
	for _, name := range f.Meta.Names {
		raw, err := os.ReadFile(filepath.Join(f.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sums, err := os.ReadFile(filepath.Join(f.Dir, "."+name+".crc"))
		if err != nil {
			t.Fatal(err)
		}
		for _, damage := range []int{-1, 0, len(raw) / 2, len(raw) - 1} {
			bad := []byte(string(raw))
			if damage >= 0 {
				bad[damage] ^= 4
			}
			root := t.TempDir()
			put(t, root, "db/1/"+name, string(bad))
			put(t, root, "db/1/."+name+".crc", string(sums))
			src, err := New(root)
			if err != nil {
				t.Fatal(err)
			}
			r, err := src.Open(t.Context(), "db", "1", source.File{Name: name}, source.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, r)
			if errors.Is(err, source.ErrCorrupt) != (damage >= 0) || err != nil && damage < 0 {
				t.Errorf("%s with the byte %d changed: %v", name, damage, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
