package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sequins/internal/fsys"
)

// Staging is where one load writes its blocks: the directory of a content, under temporary names. It
// can be passed to another process, as JSON. Only [Dir.Publish], in the process that owns the store,
// makes blocks of the files.
type Staging struct {
	Path   string `json:"path"`   // of the content's directory
	Serial uint64 `json:"serial"` // makes the temporary names differ from those of other loads

	FS fsys.FS `json:"-"` // nil for that of the operating system
}

// Staging returns a new one, with names of its own.
func (d *Dir) Staging() Staging {
	return Staging{Path: d.path, Serial: d.store.names.Add(1), FS: d.store.fs}
}

func (s Staging) fileSystem() fsys.FS { return cmp.Or(s.FS, fsys.OS) }

// suffix is what the temporary names end with.
func (s Staging) suffix() string { return "." + strconv.FormatUint(s.Serial, 10) + tempSuffix }

// FinishedPath is the name of the file of a block until it is published.
func (s Staging) FinishedPath(p int) string {
	return filepath.Join(s.Path, blockName(p)+s.suffix())
}

// Temp is a directory for sort runs and other files that do not outlive the load. [Store.Create] makes it, also for a content that is there.
func (s Staging) Temp() string { return filepath.Join(s.Path, tempDir) }

// CreateBlock opens a new file for the block of partition p, to be given to FinishBlock or DiscardBlock.
func (s Staging) CreateBlock(p int) (fsys.File, error) {
	return s.fileSystem().Create(s.FinishedPath(p))
}

// FinishBlock makes a block durable under its temporary name, and closes it. If that fails, it is removed.
func (s Staging) FinishBlock(f fsys.File) error { return fsys.Finish(s.fileSystem(), f) }

// DiscardBlock closes and removes a file that CreateBlock has opened.
func (s Staging) DiscardBlock(f fsys.File) error {
	return errors.Join(f.Close(), s.remove(f.Name()))
}

// RemoveBlock removes a finished block that is not to be published.
func (s Staging) RemoveBlock(p int) error { return s.remove(s.FinishedPath(p)) }

func (s Staging) remove(name string) error {
	if err := s.fileSystem().Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Former lists the directories of all other contents of the db, those of the newest version first.
func (s Staging) Former() (dirs []string, err error) {
	db := filepath.Dir(filepath.Dir(s.Path))
	contents, err := inputs(s.fileSystem(), db)
	for _, in := range slices.Backward(contents) {
		if dir := filepath.Join(db, in.Name, in.Hash); dir != s.Path {
			dirs = append(dirs, dir)
		}
	}
	return dirs, err
}

// LinkBlock makes the file of the block of partition p in a directory of Former that of a finished block too, to be given to Publish or RemoveBlock, and
// returns its name. It does not check the block, which is durable. The error wraps [fs.ErrNotExist] if former has no such block.
func (s Staging) LinkBlock(former string, p int) (name string, err error) {
	name = s.FinishedPath(p)
	return name, s.fileSystem().Link(filepath.Join(former, blockName(p)), name)
}

// Publish gives finished blocks the names under which they count, durably. A block that a partition has
// already is replaced. If it fails, some of the blocks may be published; the error wraps
// [fs.ErrNotExist] if one of them is not there, or the content has been removed.
func (d *Dir) Publish(s Staging, partitions ...int) error {
	var err error
	d.db.mu.RLock() // a directory that is not gone stays so meanwhile
	for i := 0; i < len(partitions) && err == nil; i++ {
		if err = d.check(partitions[i]); err == nil {
			err = d.store.fs.Rename(d.BlockPath(partitions[i])+s.suffix(), d.BlockPath(partitions[i]))
		}
	}
	d.db.mu.RUnlock() // a slow disk keeps only this caller waiting
	if err != nil {
		return fmt.Errorf("publishing blocks: %w", err)
	}
	return d.store.fs.SyncDir(d.path)
}

// Missing returns those of some ascending partitions that have no block.
func (d *Dir) Missing(want []int) ([]int, error) {
	complete, err := d.Complete()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(want), func(p int) bool {
		_, found := slices.BinarySearch(complete, p)
		return found
	}), nil
}

// Clear removes what a load has left that ended before its time: temporary files of its blocks, and
// Temp. No other load of this content may run.
func (d *Dir) Clear(s Staging) error {
	d.db.mu.RLock()
	defer d.db.mu.RUnlock()
	if d.isGone() {
		return nil
	}
	entries, err := d.store.fs.ReadDir(d.path)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), s.suffix()) {
			err = errors.Join(err, d.store.fs.Remove(filepath.Join(d.path, e.Name())))
		}
	}
	return errors.Join(err, d.store.fs.RemoveAll(s.Temp()))
}
