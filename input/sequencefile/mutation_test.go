package sequencefile

import (
	"os"
	"path/filepath"
	"testing"

	"sequins/internal/unpack"
	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/mutate"
	"sequins/test/sequencefiles"
)

// TestMutations damages files that this package and Hadoop wrote: what is read is right, as far as the format shows
// damage, or an error.
func TestMutations(t *testing.T) {
	type original struct {
		want    []record
		start   int  // of the records
		checked bool // every bit behind start is covered by a checksum
	}
	var files [][]byte
	var originals []original
	add := func(file []byte, checked bool) {
		want, err := readFile(file)
		expect.NoError(t, err)
		files = append(files, file)
		originals = append(originals, original{want, int(boundaries(t, file)[0]), checked})
	}
	for _, opts := range modes() {
		add(smallFile(t, opts), opts.Compression == sequencefiles.Block && checked(opts.Codec))
	}
	for _, name := range []string{"text-none", "text-block-default", "bytes-block-lz4", "bytes-record-snappy", "text-record-gzip",
		"bytes-block-zstandard", "randomised-block-bzip2-java", "randomised-record-bzip2-java", "header4-none", "metadata-block-default"} {
		f := harness.FixtureByName(t, name)
		file, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
		expect.NoError(t, err)
		add(file, false)
	}
	limit := func(size int) uint64 { return unpack.MaxWindow + 64<<20 + 2048*uint64(size) }
	mutate.Run(t, files, limit, func(t *testing.T, i int, f mutate.File) {
		got, err := readFile(f.Data)
		if err != nil {
			wantCorrupt(t, err)
		}
		o := originals[i]
		if !f.Cut && (!o.checked || f.First < o.start) {
			return
		}
		if len(got) > len(o.want) || sameRecords(got, o.want[:len(got)]) != "" {
			t.Errorf("%d records of %d, not as they were, %v", len(got), len(o.want), err)
		}
	})
}
