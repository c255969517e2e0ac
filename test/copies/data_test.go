//go:build integration

package copies

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/source"
	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

const (
	// db is the only database of most nodes.
	db = "words"
	// keysOfPart is how many keys of a part are read.
	keysOfPart = 3
	// slowPart is the part that has the size version.slow.
	slowPart = 3
	// maxFiller is the size of the largest value.
	maxFiller = 1 << 20
)

// A version is the content of a directory. Versions with the same number of parts have the same keys, and their parts have the same
// names. If their sizes are equal too, the files have equal sizes.
type version struct {
	generation int  // which versions replace which: values name it
	parts      int  // number of files
	size, slow int  // bytes of a part, about, and of slowPart; 0: as the others
	marker     bool // _SUCCESS
	lists      bool // _SUCCESS lists the files, as S3A's committers write it
	built      bool // the parts are finished blocks, with their manifest and _SUCCESS
}

// next returns the version that replaces v.
func (v version) next() version {
	v.generation++
	return v
}

// keys returns the keys that are read.
func (v version) keys() (keys []string) {
	for p := range v.parts {
		for i := range keysOfPart {
			keys = append(keys, fmt.Sprintf("part-%d-key-%d", p, i))
		}
	}
	return keys
}

// value returns the value of a key in a generation.
func value(generation int, key string) string { return fmt.Sprintf("%d %s", generation, key) }

// write writes the files of v to a new directory. They are years old, and the marker is the youngest.
func (v version) write(t testing.TB, dir string) string {
	t.Helper()
	if v.built {
		return v.build(t, dir)
	}
	expect.NoError(t, os.MkdirAll(dir, 0o755))
	years := time.Date(2019, 3, 4, 5, 6, 0, 0, time.UTC)
	for p := range v.parts {
		path := filepath.Join(dir, partName(p))
		v.writePart(t, path, p)
		setTime(t, path, years.Add(time.Duration(p)*time.Second))
	}
	if v.marker || v.lists {
		path := filepath.Join(dir, source.SuccessFile)
		expect.NoError(t, os.WriteFile(path, v.success(), 0o644))
		setTime(t, path, years.Add(time.Minute))
	}
	return dir
}

// build makes finished blocks of v in a new directory.
func (v version) build(t testing.TB, dir string) string {
	t.Helper()
	v.built = false
	from := v.write(t, filepath.Join(t.TempDir(), db, "1"))
	cmd := exec.Command(process.Binary(t), "build", from, dir)
	cmd.Env = append(os.Environ(), "SEQUINS_SETTLE=0s")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// success returns the content of _SUCCESS.
func (v version) success() []byte {
	if !v.lists {
		return nil
	}
	var names []string
	for p := range v.parts {
		names = append(names, fmt.Sprintf("%q", "s3a://bucket/out/"+partName(p)))
	}
	return fmt.Appendf(nil, `{"name": "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1", "committer": "magic", "success": true, "filenames": [%s]}`,
		strings.Join(names, ", "))
}

func partName(p int) string { return fmt.Sprintf("part-%05d", p) }

func setTime(t testing.TB, path string, at time.Time) {
	t.Helper()
	expect.NoError(t, os.Chtimes(path, at, at))
}

// writePart writes the records that are read, and as much noise as makes up the size.
func (v version) writePart(t testing.TB, path string, p int) {
	t.Helper()
	sequencefiles.WriteFile(t, path, sequencefiles.WriterOptions{}, func(add func(key, value string)) {
		for _, key := range v.keys()[p*keysOfPart : (p+1)*keysOfPart] {
			add(key, value(v.generation, key))
		}
		noise := rand.NewChaCha8([32]byte{byte(v.generation), byte(p)})
		for left := v.sizeOf(p); left > 0; left -= maxFiller {
			filler := make([]byte, min(left, maxFiller))
			_, _ = noise.Read(filler)
			add(fmt.Sprintf("filler-%d-%d", p, left), string(filler))
		}
	})
}

func (v version) sizeOf(p int) int {
	if p == slowPart && v.slow > 0 {
		return v.slow
	}
	return v.size
}
