package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sequins/input/finished"
	"sequins/source"
	"sequins/store"
)

// A Difference is how the files of a version differ from those of a plan, by name, in order.
type Difference struct{ Added, Replaced, Deleted []string }

// Differing returns how the files of a version differ from those of a plan, by names, sizes and marks.
func Differing(plan store.Manifest, files []source.File) (d Difference) {
	_, data, err := classify(files)
	if err != nil {
		data = files
	}
	planned := make(map[string]store.ManifestFile, len(plan.Files))
	for _, was := range plan.Files {
		planned[was.Name] = was
	}
	for _, f := range data {
		was, found := planned[f.Name]
		switch {
		case !found:
			d.Added = append(d.Added, f.Name)
		case was != store.ManifestFile{Name: f.Name, Size: f.Size, Mark: f.Mark}:
			d.Replaced = append(d.Replaced, f.Name)
		}
		delete(planned, f.Name)
	}
	d.Deleted = slices.Sorted(maps.Keys(planned))
	return d
}

// None reports whether the files are the same.
func (d Difference) None() bool { return !d.Grown() && len(d.Deleted) == 0 }

// Grown reports whether there are files that the plan does not have.
func (d Difference) Grown() bool { return len(d.Added)+len(d.Replaced) > 0 }

// Subset reports whether the files are some of those of the plan, and others are gone.
func (d Difference) Subset() bool { return !d.Grown() && len(d.Deleted) > 0 }

// String describes the difference, with an example of each kind.
func (d Difference) String() string {
	var parts []string
	for _, kind := range []struct {
		verb  string
		names []string
	}{{"added", d.Added}, {"replaced", d.Replaced}, {"deleted", d.Deleted}} {
		if n := len(kind.names); n == 1 {
			parts = append(parts, fmt.Sprintf("%s was %s", kind.names[0], kind.verb))
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf("%s and %d more files were %s", kind.names[0], n-1, kind.verb))
		}
	}
	return strings.Join(parts, ", ")
}

// MadeFrom returns what the blocks of a plan of this Loader are made from, but for the contents of files: a text with the settings that
// determine them, and the files of each partition, in order, or once those of all partitions. There are no files if
// blocks also depend on others, nor for finished blocks.
func (l *Loader) MadeFrom(p *Plan) (settings string, files [][]source.File) {
	o := l.opts
	settings = fmt.Sprintf("%s %s %d %t %v %d {%q %q} %#v", p.Format, p.Partitioner, p.Partitions, p.Aligned, o.Compression, o.BlockSize,
		p.fields.Key, p.fields.Value, []pathColumn(p.columns))
	if len(p.Files) == 0 || l.tolerance != nil || p.ready != nil {
		return settings, nil
	}
	if !p.Aligned {
		return settings, [][]source.File{p.Files}
	}
	files = make([][]source.File, p.Partitions)
	for i, f := range p.Files {
		files[p.parts[i]] = append(files[p.parts[i]], f)
	}
	return settings, files
}

// Finished returns the finished block of a partition, and false if the plan is not one of finished blocks.
func (p *Plan) Finished(partition int) (b finished.Block, ok bool) {
	if p.ready == nil {
		return b, false
	}
	return p.ready.Blocks[partition], true
}
