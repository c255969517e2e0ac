package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"sequins/input/finished"
	"sequins/source"
)

// readManifest reads the manifest of finished blocks.
func readManifest(d dataFile) (*finished.Manifest, error) {
	in, err := d.open(0)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(in, finished.MaxSize+1)) // Parse refuses a longer one
	if err = errors.Join(err, in.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", d.path, err)
	}
	return finished.Parse(data, d.path)
}

// matchManifest adds to the files beside a manifest what it says of them. A manifest of other files is a file with an error.
func matchManifest(manifest dataFile, all []dataFile) []dataFile {
	dir := path.Dir(manifest.path)
	var beside []int // in all, where files of directories can be among them
	var files []source.File
	for i, d := range all {
		if path.Dir(d.path) == dir {
			beside, files = append(beside, i), append(files, source.File{Name: path.Base(d.path), Size: d.size})
		}
	}
	m, err := readManifest(manifest)
	if err == nil {
		err = m.Match(files)
	}
	if err != nil {
		manifest.err = withCode(exitUnreadable, fmt.Errorf("%s: %w", dir, err))
		return append(all, manifest)
	}
	for i, at := range beside {
		all[at].want = &m.Blocks[i]
	}
	return all
}

// manifestIn returns the manifest of a version in a source.
func manifestIn(ctx context.Context, src source.Source, db, version string) dataFile {
	return dataFile{path: src.Path(db, version) + "/" + source.BlocksFile, db: db, open: func(offset int64) (io.ReadCloser, error) {
		return src.Open(ctx, db, version, source.File{Name: source.BlocksFile}, source.ReadOptions{Offset: offset})
	}}
}
