package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"sequins/internal/human"
	"sequins/loadproc"
	"sequins/node"
	"sequins/store"
)

func (d *deep) storeChecks() []deepCheck {
	return []deepCheck{{"local_store", d.checkStore}, {"local_store, file system", d.checkFileSystem}, {"local_store, free space", d.checkSpace}}
}

// existing returns the directory of the store, or the deepest one above it that exists.
func (d *deep) existing() (dir string, isStore bool, err error) {
	dir = filepath.Clean(d.c.LocalStore)
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return "", false, fmt.Errorf("%s is not a directory", at)
		case err == nil:
			return at, at == dir, nil
		case !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at):
			return "", false, err
		}
	}
}

// checkStore writes, links, renames and removes a file in the store, or where it would be created. What it makes has a name that the
// store does not use.
func (d *deep) checkStore(context.Context) finding {
	dir, isStore, err := d.existing()
	if err != nil {
		return failedBy(err)
	}
	if err := tryDirectory(dir); err != nil {
		return failedBy(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return failedBy(err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && os.Getuid() == 0 && stat.Uid != 0 {
		return warned("%s belongs to user %d and was tried as root: run this as the user of the service", dir, stat.Uid)
	}
	if !isStore {
		return found("%s can be created in %s", d.c.LocalStore, dir)
	}
	if old, _ := store.Look(dir).RefuseOld(); old != nil {
		return failedBy(old)
	}
	if pid := store.Owner(dir); pid != 0 {
		return found("%s can be written, and is in use by process %d", dir, pid)
	}
	return found("%s can be written; files can be linked and renamed", dir)
}

// tryDirectory does with a file what the store does with blocks.
func tryDirectory(dir string) (err error) {
	temp, err := os.MkdirTemp(dir, ".sequins-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	file, linked, renamed := filepath.Join(temp, "a"), filepath.Join(temp, "b"), filepath.Join(temp, "c")
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err = f.WriteString("x"); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(file, linked); err != nil {
		return fmt.Errorf("hard links do not work, with which unchanged partitions are kept: %w", err)
	}
	return os.Rename(linked, renamed)
}

func (d *deep) checkFileSystem(context.Context) finding {
	dir, _, err := d.existing()
	if err != nil {
		return failedBy(err)
	}
	disk, err := statDisk(dir)
	if err != nil {
		return failedBy(fmt.Errorf("%s: %w", dir, err))
	}
	if disk.unfit != "" {
		return warned("%s is on %s", dir, disk.unfit)
	}
	return found("%s has %s, of which %s are free", dir, human.Size(disk.bytes), human.Size(disk.free))
}

// disk is a file system.
type disk struct {
	bytes, free int64
	unfit       string // what it is and why it is hardly meant to hold a store; "" if it may
}

// checkSpace compares the free space with what the newest versions of the source need, by the estimate of loads.
func (d *deep) checkSpace(context.Context) finding {
	dir, _, err := d.existing()
	if err != nil {
		return failedBy(err)
	}
	disk, err := statDisk(dir)
	if err != nil {
		return failedBy(fmt.Errorf("%s: %w", dir, err))
	}
	sizes, err := d.contents()
	if err != nil {
		return warned("what the source needs is not known, as it cannot be read")
	}
	share, of := d.share()
	needs, sorting := d.estimate(sizes, share)
	free := disk.free - int64(d.c.Load.MinFreeDisk)
	text := fmt.Sprintf("the newest versions of %s need about %s%s, and %s are free", human.Plural(len(sizes.newest), "database"), human.Size(needs), of, human.Size(max(0, free)))
	if d.c.Load.MinFreeDisk > 0 {
		text += " beside load.min_free_disk"
	}
	if sizes.left > 0 {
		text += fmt.Sprintf(" (%d more databases were not looked at)", sizes.left)
	}
	switch {
	case needs > free:
		return failed("%s: use a larger disk, or more nodes", text)
	case needs+sorting > free:
		return warned("%s; if files are not sorted and partitioned, %s more are needed while they are sorted", text, human.Size(sorting))
	}
	return found("%s", text)
}

// share returns the part of the data that this node will hold.
func (d *deep) share() (share float64, of string) {
	s := &d.c.Sharding
	if !s.Enabled {
		return 1, ""
	}
	nodes := max(1, s.MinNodes)
	if z, err := d.zk(); err == nil {
		nodes = max(nodes, z.withThisNode)
	}
	share = min(1, float64(s.Replication)/float64(nodes))
	if s.Role == "router" {
		share = 0
	}
	return share, fmt.Sprintf(" on each of %s", human.Plural(nodes, "node"))
}

// estimate returns what the newest versions that are not in the store need, and what sorting may need in addition.
func (d *deep) estimate(sizes sourceSizes, share float64) (needs, sorting int64) {
	have := store.Look(d.c.LocalStore)
	memory := int64(d.c.Load.Memory)
	var sorts []int64
	for db, newest := range sizes.newest {
		m := store.Manifest{Version: newest.name, Partitions: max(1, len(newest.files)), Aligned: true}
		for _, f := range newest.files {
			m.Files = append(m.Files, store.ManifestFile{Name: f.Name, Size: f.Size})
		}
		room := roomFor(have, db, m, share)
		aligned := room.Needs(m, memory)
		needs += aligned
		m.Aligned = false
		sorts = append(sorts, room.Needs(m, memory)-aligned)
	}
	parallel := d.c.MaxParallelLoads
	if parallel == 0 {
		parallel = node.DefaultParallelLoads
	}
	slices.Sort(sorts)
	for _, bytes := range sorts[max(0, len(sorts)-parallel):] {
		sorting += bytes
	}
	return needs, sorting
}

// roomFor returns what is known of the space for a version: the partitions that the node will hold, and the size of the blocks of the
// newest version in the store in relation to its files.
func roomFor(have *store.Store, db string, m store.Manifest, share float64) loadproc.Room {
	r := loadproc.Room{Held: make([]bool, m.Partitions)}
	for p := range int(float64(m.Partitions)*share + 0.999) {
		r.Want = append(r.Want, p)
	}
	inputs, err := have.Contents(db)
	if err != nil || len(inputs) == 0 {
		return r
	}
	newest := inputs[len(inputs)-1]
	dir, err := have.Dir(db, newest)
	if err != nil {
		return r
	}
	complete, err := dir.Complete()
	if err != nil {
		return r
	}
	if newest.Name == m.Version && len(complete) >= len(r.Want) {
		r.Want = nil // it is there
		return r
	}
	held := make([]bool, dir.Manifest().Partitions)
	for _, p := range complete {
		held[p] = true
		if info, err := os.Stat(dir.BlockPath(p)); err == nil {
			r.Blocks += info.Size()
		}
	}
	r.Source = dir.Manifest().SourceOf(held)
	return r
}
