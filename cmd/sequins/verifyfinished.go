package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sequins/finished"
	"sequins/source"
)

// verifyFinished compares the blocks beside a manifest of finished blocks with it: their names, sizes and hashes.
func (v *verifier) verifyFinished(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(f, finished.MaxSize+1)) // Parse refuses a longer one
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	m, err := finished.Parse(data, path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var files []source.File
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, e.Name())); strings.HasSuffix(e.Name(), source.BlockSuffix) && err == nil {
			files = append(files, source.File{Name: e.Name(), Size: info.Size()})
		}
	}
	if err := m.Match(files); err != nil {
		return fmt.Errorf("%s/%w", dir, err)
	}
	for i := range m.Blocks {
		if err := v.verifyHash(ctx, filepath.Join(dir, m.Blocks[i].Name), m.Blocks[i].SHA256); err != nil {
			return err
		}
	}
	return nil
}

// verifyHash compares the SHA-256 of a file with the one of the manifest.
func (v *verifier) verifyHash(ctx context.Context, path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	hash, buffer := sha256.New(), make([]byte, 256<<10)
	for {
		n, err := f.Read(buffer)
		hash.Write(buffer[:n]) // never fails
		v.progress.add(int64(n))
		if err == io.EOF {
			break
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	if sum := fmt.Sprintf("%x", hash.Sum(nil)); sum != want {
		return fmt.Errorf("%s: %w: its SHA-256 is %s, and %s in %s", path, finished.ErrCorrupt, sum, want, source.BlocksFile)
	}
	return nil
}
