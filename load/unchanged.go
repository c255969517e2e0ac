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
	return err == nil && slices.EqualFunc(plan.Files, data, isSame)
}

// OnlyDeleted reports whether the files of a version are those of a plan, with some missing.
func OnlyDeleted(plan store.Manifest, files []source.File) bool {
	_, data, err := classify(files)
	if err != nil || len(data) >= len(plan.Files) {
		return false
	}
	planned := make(map[string]store.ManifestFile, len(plan.Files))
	for _, was := range plan.Files {
		planned[was.Name] = was
	}
	return !slices.ContainsFunc(data, func(f source.File) bool {
		was, found := planned[f.Name]
		return !found || !isSame(was, f)
	})
}

func isSame(was store.ManifestFile, f source.File) bool {
	return was.Name == f.Name && was.Size == f.Size && was.ModTime.Equal(f.ModTime)
}
