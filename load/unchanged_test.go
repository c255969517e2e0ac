package load

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sequins/source"
	"sequins/store"
)

// TestDiffering compares plans with listings, also of so many files that comparing each with each would take minutes.
func TestDiffering(t *testing.T) {
	const n = 1 << 17
	var plan store.Manifest
	var files []source.File
	for i := range n {
		name := fmt.Sprintf("part-r-%06d", i)
		plan.Files = append(plan.Files, store.ManifestFile{Name: name, Size: 10, Mark: "a"})
		files = append(files, source.File{Name: name, Size: 10, Mark: "a"})
	}
	larger, other := slices.Clone(files[1:]), slices.Clone(files)
	larger[0].Size, other[7].Mark = 11, "b"
	other[8].ModTime = time.Now()
	for name, test := range map[string]struct {
		files       []source.File
		none, grown bool // neither: some of the files
		text        string
	}{
		"all":                 {files, true, false, ""},
		"one is missing":      {files[1:], false, false, "part-r-000000 was deleted"},
		"none is left":        {nil, false, false, "part-r-000000 and 131071 more files were deleted"},
		"and one has changed": {larger, false, true, "part-r-000001 was replaced, part-r-000000 was deleted"},
		"another mark":        {other, false, true, "part-r-000007 was replaced"},
		"one is new":          {append(files[1:n:n], source.File{Name: "part-r-999999"}), false, true, "part-r-999999 was added, part-r-000000 was deleted"},
	} {
		if got := Differing(plan, test.files); got.None() != test.none || got.Grown() != test.grown || got.Subset() != (!test.none && !test.grown) || got.String() != test.text {
			t.Errorf("%s: none %t, grown %t, %q", name, got.None(), got.Grown(), got)
		}
	}
}
