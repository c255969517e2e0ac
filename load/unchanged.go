package load

import (
	"fmt"
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

// Inputs returns what the blocks of a plan of this Loader are made from, but for the contents of files: a text with the settings that
// determine them, and the files of each partition, in order. The IDs of finished blocks are their hashes. It is false if blocks also
// depend on other files.
func (l *Loader) Inputs(p *Plan) (settings string, files [][]source.File, ok bool) {
	o, c := l.opts, p.classes
	settings = fmt.Sprintf("%s %s %d %t %v %d {%q %q} %#v %q %q", p.Format, p.Partitioner, p.Partitions, p.Aligned, o.Compression, o.BlockSize,
		p.fields.Key, p.fields.Value, []pathColumn(p.columns), c.key, c.value)
	files = make([][]source.File, p.Partitions)
	for i, f := range p.Files {
		switch {
		case p.ready != nil:
			f.ID = p.ready.Blocks[i].SHA256
			files[i] = []source.File{f}
		case p.Aligned:
			files[p.parts[i]] = append(files[p.parts[i]], f)
		}
	}
	if !p.Aligned {
		files = slices.Repeat([][]source.File{p.Files}, p.Partitions)
	}
	return settings, files, (p.ready != nil || l.tolerance == nil) && len(p.Files) > 0
}
