package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sequins/input/finished"
	"sequins/source"
)

// manifest is the manifest of finished blocks, and the blocks beside it.
type manifest struct {
	path   string // of the manifest
	read   func() (io.ReadCloser, error)
	blocks []dataFile
}

// localManifest queues a manifest of this machine with the blocks beside it.
func (v *verifier) localManifest(path string) {
	m := manifest{path: path, read: func() (io.ReadCloser, error) { return os.Open(path) }}
	entries, _ := os.ReadDir(filepath.Dir(path)) // the manifest misses what is not listed
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), source.BlockSuffix) {
			continue
		}
		if d, err := v.local(filepath.Join(filepath.Dir(path), e.Name()), filepath.Dir(path), e.Name()); err == nil {
			m.blocks = append(m.blocks, d)
		}
	}
	v.manifests = append(v.manifests, m)
}

// remoteManifest queues the manifest of a version in a source, if there is one.
func (v *verifier) remoteManifest(arg string) error {
	elements := elementsOf(arg)
	l, _ := split(arg, elements, len(elements)) // the version was found
	src, err := v.open(l.source)
	if err != nil {
		return err
	}
	there, err := source.Exists(v.ctx, src, l.db, l.version, source.BlocksFile)
	if err != nil || !there {
		return ofFile(err, true)
	}
	m := manifest{path: src.Path(l.db, l.version) + "/" + source.BlocksFile, read: func() (io.ReadCloser, error) {
		return src.Open(v.ctx, l.db, l.version, source.File{Name: source.BlocksFile}, source.ReadOptions{})
	}}
	all, err := v.version(l)
	for _, d := range all {
		if strings.HasSuffix(d.name, source.BlockSuffix) {
			m.blocks = append(m.blocks, d)
		}
	}
	v.manifests = append(v.manifests, m)
	return err
}

// verifyFinished compares the blocks beside a manifest of finished blocks with it: their names, sizes and hashes. A block
// that was reported as bad is not reported again, and the error is that of the manifest.
func (v *verifier) verifyFinished(ctx context.Context, at manifest) error {
	f, err := at.read()
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(f, finished.MaxSize+1)) // Parse refuses a longer one
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	m, err := finished.Parse(data, at.path)
	if err != nil {
		return ofFile(err, false)
	}
	var listed []source.File
	blocks := make(map[string]dataFile)
	for _, d := range at.blocks {
		blocks[d.name] = d
		if !v.reported(d.path) {
			listed = append(listed, source.File{Name: d.name, Size: d.size})
		} else if i := slices.IndexFunc(m.Blocks, func(b finished.Block) bool { return b.Name == d.name }); i >= 0 {
			listed = append(listed, source.File{Name: d.name, Size: m.Blocks[i].Size})
		}
	}
	if err := m.Match(listed); err != nil {
		return ofFile(fmt.Errorf("%s/%w", strings.TrimSuffix(at.path, "/"+source.BlocksFile), err), false)
	}
	for i := range m.Blocks {
		d := blocks[m.Blocks[i].Name]
		if v.reported(d.path) {
			continue
		}
		if err := v.verifyHash(ctx, d, m.Blocks[i].SHA256); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			v.complain(d.path, d.failed(err))
		}
	}
	return nil
}

// reported reports whether a file was reported as bad.
func (v *verifier) reported(path string) bool {
	return slices.ContainsFunc(v.result.Bad, func(b badFile) bool { return b.Path == path })
}

// verifyHash compares the SHA-256 of a file with the one of the manifest.
func (v *verifier) verifyHash(ctx context.Context, d dataFile, want string) error {
	f, err := d.open(0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	hash, buffer := sha256.New(), make([]byte, 256<<10)
	for {
		n, err := f.Read(buffer)
		hash.Write(buffer[:n]) // never fails
		v.progress.Add(int64(n))
		if err == io.EOF {
			break
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	if sum := fmt.Sprintf("%x", hash.Sum(nil)); sum != want {
		return fmt.Errorf("%s: %w: its SHA-256 is %s, and %s in %s", d.path, finished.ErrCorrupt, sum, want, source.BlocksFile)
	}
	return nil
}
