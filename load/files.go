package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"sequins/internal/content"
	"sequins/source"
	"sequins/store"
)

// Input returns the input of a version that a listing has. o is as configured, not of PlannedBy. Its hash is that of name, size and mark of each data
// file, in order, and of the options that decide which records a block has: Fields, PartitionColumns, Partitioner and Partitions. For
// finished blocks it is that of their manifest, and of nothing else.
func (o Options) Input(version string, l source.Listing) content.Input {
	format, files, err := classify(l.Files)
	switch {
	case err != nil:
		files = l.Files
	case format == FormatBlocks && l.Blocks != "":
		return finishedInput(version, l.Blocks)
	}
	texts := []string{o.Fields.Key, o.Fields.Value, strconv.FormatBool(o.PartitionColumns), cmp.Or(o.Partitioner, "auto"), strconv.Itoa(o.Partitions)}
	for _, f := range files {
		texts = append(texts, f.Name, strconv.FormatInt(f.Size, 10), f.Mark)
	}
	return content.Input{Name: version, Hash: content.Sum(texts...)}
}

// finishedInput returns the input of finished blocks whose manifest has a SHA-256, as hexadecimal digits.
func finishedInput(version, manifest string) content.Input {
	return content.Input{Name: version, Hash: content.Sum(FormatBlocks, manifest)}
}

// files are the data files of a version, and their format as far as the names tell it.
type files struct {
	listing source.Listing
	format  string
	data    []source.File
}

// list returns the files of a version, or those of Options.Manifest. A
// plan is made from this list, and its blocks are published only if the list has not changed, see publisher.
func (l *Loader) list(ctx context.Context, db, version string) (f files, err error) {
	f.listing, err = source.List(ctx, l.src, db, version, l.opts.RequireSuccess)
	if err != nil {
		return f, err
	}
	if f.listing.Incomplete != "" {
		return f, fmt.Errorf("%w: %s", ErrIncomplete, f.listing.Incomplete)
	}
	if f.format, f.data, err = classify(f.listing.Files); err == nil && l.opts.repeats() {
		f.data, err = planned(l.opts.Manifest, l.src.Path(db, version), f.data)
	}
	return f, err
}

// repeats reports whether the files of a plan are those of Options.Manifest. Finished blocks are known by their own manifest.
func (o *Options) repeats() bool { return o.Manifest != nil && o.Manifest.Format != FormatBlocks }

// inputOf returns the input of listed files. It must be in, unless that has no hash.
func (l *Loader) inputOf(f files, db string, in content.Input) (content.Input, error) {
	if l.opts.repeats() {
		return l.opts.Manifest.Content().Input, nil
	}
	now := l.opts.Input(in.Name, f.listing)
	if in.Hash != "" && now != in {
		return now, fmt.Errorf("%s: %w: the input %s was to be loaded, and its files are now those of the input %s",
			l.src.Path(db, in.Name), source.ErrChanged, in.Hash, now.Hash)
	}
	return now, nil
}

// planned returns those of some data files that are in a plan. All of its files must be there.
func planned(m *store.Manifest, path string, data []source.File) ([]source.File, error) {
	d := Differing(*m, data)
	if added := d.Added; len(d.Deleted)+len(d.Replaced) > 0 {
		d.Added = nil
		return nil, fmt.Errorf("%s: %w: files of the input %s are gone: %s", path, source.ErrChanged, m.Input, d)
	} else if len(added) == 0 {
		return data, nil
	}
	return slices.DeleteFunc(slices.Clone(data), func(f source.File) bool {
		_, isNew := slices.BinarySearch(d.Added, f.Name)
		return isNew
	}), nil
}
