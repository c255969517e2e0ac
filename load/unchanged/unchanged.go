package unchanged

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"

	"sequins/blocks"
	"sequins/internal/parallel"
	"sequins/load"
	"sequins/source"
	"sequins/store"
)

// A Reuse links and describes the blocks of one load. It is not safe for concurrent use.
type Reuse struct {
	loader  *load.Loader
	sums    *Sums
	plan    *load.Plan
	staging store.Staging

	settings string          // that determine the blocks
	files    [][]source.File // by partition, or of all partitions: see group
	columns  bool            // of directories are part of the values
	off      bool            // blocks depend on more than their files

	heads, checksums facts
}

// New returns the Reuse of a load by plan into staging. The loader reads from sums.
func New(loader *load.Loader, sums *Sums, plan *load.Plan, staging store.Staging) *Reuse {
	r := &Reuse{loader: loader, sums: sums, plan: plan, staging: staging, heads: make(facts), checksums: make(facts)}
	fields, ok := plan.Manifest().Fields, false
	r.columns = fields != nil && fields.PartitionColumns
	r.settings, r.files, ok = loader.MadeFrom(plan)
	r.off = !ok
	return r
}

// Link makes blocks of those of some partitions whose input is that of a block of another content on this disk, and returns what they were made
// from, in ascending order, with the size of the blocks in bytes. The blocks are finished, as those of a load, and the source has been listed again and still
// has the files of the plan. An error is that of ctx or of load.Loader.Verify; then no block is left.
func (r *Reuse) Link(ctx context.Context, want []int) (linked []store.Made, bytes int64, err error) {
	former, err := r.staging.Former()
	if err != nil || r.off || !r.canLink(former) {
		return nil, 0, ctx.Err()
	}
	heads, err := r.inputs(ctx, want, r.heads, r.head)
	if err != nil {
		return nil, 0, err
	}
	outlines, newest := make(map[string]bool), make(map[string]store.Former) // by what they were made from
	for _, f := range former {
		outlines[f.Outline] = true
		if _, found := newest[f.Hash]; !found {
			newest[f.Hash] = f
		}
	}
	similar := slices.DeleteFunc(slices.Clone(want), func(p int) bool { return !outlines[outlineOf(heads[p])] }) // no former block has the outline ""
	sums, err := r.inputs(ctx, similar, r.checksums, r.checksum)
	if err != nil {
		return nil, 0, err
	}
	made, sizes := make([]store.Made, len(similar)), make([]int64, len(similar))
	err = parallel.Run(ctx, min(runtime.GOMAXPROCS(0), len(similar)), len(similar), func(ctx context.Context, i int) error {
		if f, found := newest[sums[similar[i]]]; found && f.Partition == similar[i] { // no former block has the sum ""
			if size, err := r.link(ctx, f); err == nil {
				made[i], sizes[i] = f.Made, size
			}
		}
		return ctx.Err()
	})
	linked = slices.DeleteFunc(made, func(m store.Made) bool { return m.Hash == "" })
	if err == nil && len(linked) > 0 {
		err = r.loader.Verify(ctx, r.plan)
	}
	if err != nil {
		for _, m := range linked {
			_ = r.staging.RemoveBlock(m.Partition) // the store removes leftover files at its next start
		}
		return nil, 0, err
	}
	for _, size := range sizes {
		bytes += size
	}
	return linked, bytes, nil
}

// canLink reports whether one of some blocks can be linked: the file system may have no links, and then reading the files for their
// hashes is in vain.
func (r *Reuse) canLink(former []store.Former) bool {
	for _, f := range former {
		switch _, err := r.staging.LinkBlock(f); {
		case err == nil:
			return r.staging.RemoveBlock(f.Partition) == nil
		case !errors.Is(err, fs.ErrNotExist):
			return false
		}
	}
	return false
}

// link links a block, compares all its checksums, and returns its size in bytes.
func (r *Reuse) link(ctx context.Context, f store.Former) (size int64, err error) {
	name, err := r.staging.LinkBlock(f)
	if err != nil {
		return 0, err
	}
	b, err := blocks.Open(name)
	if err == nil {
		if p := b.Properties(); !f.Is(p) || p.Partitions != r.plan.Partitions {
			err = fmt.Errorf("%s is not the block that was recorded", f.Path)
		} else {
			err = b.ScrubContent(ctx, nil)
		}
		size, err = b.Size(), errors.Join(err, b.Close())
	}
	if err != nil {
		_ = r.staging.RemoveBlock(f.Partition) // the store removes leftover files at its next start
	}
	return size, err
}

// Made returns what finished blocks were made from, for later loads. It has to be called before they are published. What cannot be known is
// left out, and only makes later loads load these partitions again.
func (r *Reuse) Made(ctx context.Context, partitions []int) (all []store.Made) {
	if r.off {
		return nil
	}
	heads, err := r.inputs(ctx, partitions, r.heads, r.head)
	if err != nil {
		return nil
	}
	if r.plan.Format != load.FormatBlocks { // of those, the manifest has the hash
		r.sums.into(r.checksums) // what was read last is in the blocks
	}
	sums, err := r.inputs(ctx, partitions, r.checksums, r.checksum)
	if err != nil {
		return nil
	}
	for _, p := range partitions {
		m := store.Made{Partition: p, Hash: sums[p], Outline: outlineOf(heads[p])}
		if m.Hash == "" || m.Outline == "" {
			continue
		}
		b, err := blocks.Open(r.staging.FinishedPath(p))
		if err != nil {
			continue
		}
		m.Content, m.Records = b.Properties().ContentHash, b.Properties().Records
		if b.Close() == nil {
			all = append(all, m)
		}
	}
	return all
}
