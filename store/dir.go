package store

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sequins/blocks"
)

const blockSuffix = ".block"

// Dir is the directory of one content in a [Store].
type Dir struct {
	store    *Store
	db       *dbDir
	path     string
	manifest Manifest
}

// isGone reports whether the content was removed, or replaced by one of another division. db.mu is held.
func (d *Dir) isGone() bool { return d.db.dirs[d.path] != d }

// Manifest returns the plan of the content.
func (d *Dir) Manifest() Manifest { return d.manifest }

// BlockPath is where the block of partition p lies, or will lie.
func (d *Dir) BlockPath(p int) string { return d.path + string(filepath.Separator) + blockName(p) }

// blockName is the number of the partition, with at least five digits, and the suffix.
func blockName(p int) string { return fmt.Sprintf("%05d", p) + blockSuffix }

// Complete lists the partitions whose blocks are there, in ascending order.
func (d *Dir) Complete() ([]int, error) {
	entries, err := d.store.fs.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), blockSuffix)
		if !ok || e.IsDir() {
			continue
		}
		p, err := strconv.Atoi(digits)
		if err == nil && d.has(p) && e.Name() == blockName(p) {
			found = append(found, p)
		}
	}
	slices.Sort(found) // 100000.block comes before 99999.block
	return found, nil
}

func (d *Dir) has(p int) bool { return 0 <= p && p < d.manifest.Partitions }

// check returns an error if nothing may be done to partition p in this directory.
func (d *Dir) check(p int) error {
	if !d.has(p) {
		return fmt.Errorf("%s: partition %d of %d", d.path, p, d.manifest.Partitions)
	}
	if d.isGone() {
		return &fs.PathError{Op: "use", Path: d.path, Err: fs.ErrNotExist}
	}
	return nil
}

// SetAside takes the block of partition p, which turned out to be corrupt, out of the way, so that
// the partition counts as not loaded. The file is kept under another name, for those who want to know what happened to
// it, until another block of the partition is set aside.
func (d *Dir) SetAside(p int) error {
	return d.take(p, func(path string) error { return d.store.fs.Rename(path, path+blocks.CorruptSuffix) })
}

// RemoveBlock removes the block of partition p: other nodes hold the partition from now on. A block that
// is open stays readable. The error wraps [fs.ErrNotExist] if there is none.
func (d *Dir) RemoveBlock(p int) error { return d.take(p, d.store.fs.Remove) }

// take takes the name from the block of partition p, durably.
func (d *Dir) take(p int, away func(path string) error) error {
	d.db.mu.RLock()
	defer d.db.mu.RUnlock()
	if err := d.check(p); err != nil {
		return err
	}
	if err := away(d.BlockPath(p)); err != nil {
		return err
	}
	return d.store.fs.SyncDir(d.path)
}
