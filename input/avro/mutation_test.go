package avro

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sequins/internal/render"
	"sequins/internal/unpack"
	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/mutate"
)

// TestMutations damages files of Avro's own writer: what is read is a part of what was there, as far as the format shows
// damage, or an error.
func TestMutations(t *testing.T) {
	var files [][]byte
	var paths []render.Paths
	var wants [][]string
	for _, f := range harness.FixturesOf(t, "avro") {
		raw, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
		expect.NoError(t, err)
		p := render.Paths{Key: f.Meta.KeyField, Value: f.Meta.ValueField}
		want, err := scan(bytes.NewReader(raw), p)
		expect.NoError(t, err)
		files, paths, wants = append(files, raw), append(paths, p), append(wants, want)
	}
	limit := func(size int) uint64 { return unpack.MaxWindow + 64<<20 + 2048*uint64(size) }
	mutate.Run(t, files, limit, func(t *testing.T, i int, f mutate.File) {
		got, err := scan(bytes.NewReader(f.Data), paths[i])
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, render.ErrField) && !errors.Is(err, render.ErrNullKey) {
			t.Errorf("an error of no class: %v", err)
		}
		if f.Cut && (len(got) > len(wants[i]) || !slices.Equal(got, wants[i][:len(got)])) {
			t.Errorf("cut at %d: other records than there were", f.First)
		}
	})
}
