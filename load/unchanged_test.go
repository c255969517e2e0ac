package load

import (
	"fmt"
	"testing"
	"time"

	"sequins/source"
	"sequins/store"
)

// Files that are missing from a plan, of many.
func TestOnlyDeleted(t *testing.T) {
	const n = 1 << 17 // so many that comparing each with each would take minutes
	at := time.Unix(1_700_000_000, 0)
	var plan store.Manifest
	var files []source.File
	for i := range n {
		name := fmt.Sprintf("part-r-%06d", i)
		plan.Files = append(plan.Files, store.ManifestFile{Name: name, Size: 10, ModTime: at})
		files = append(files, source.File{Name: name, Size: 10, ModTime: at})
	}
	changed := append([]source.File{{Name: files[1].Name, Size: 11, ModTime: at}}, files[2:]...)
	added := append(files[1:n-1:n-1], source.File{Name: "part-r-999999", Size: 10, ModTime: at})
	for name, test := range map[string]struct {
		files []source.File
		want  bool
	}{
		"all":                  {files, false},
		"one is missing":       {files[1:], true},
		"none is left":         {nil, true},
		"and one has changed":  {changed, false},
		"and one is new":       {added, false},
		"two, and one is back": {files[:n-1], true},
	} {
		if got := OnlyDeleted(plan, test.files); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
