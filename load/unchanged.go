package load

import (
	"slices"

	"sequins/source"
	"sequins/store"
)

// Unchanged reports whether the files of a version are still those of a plan, by names, sizes and
// times.
func Unchanged(plan store.Manifest, files []source.File) bool {
	_, data, err := classify(files)
	return err == nil && slices.EqualFunc(plan.Files, data, func(was store.ManifestFile, f source.File) bool {
		return was.Name == f.Name && was.Size == f.Size && was.ModTime.Equal(f.ModTime)
	})
}
