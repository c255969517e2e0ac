package unchanged

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync/atomic"

	"sequins/blocks"
	"sequins/internal/parallel"
	"sequins/load"
	"sequins/source"
	"sequins/store"
)

// maxTries is how many former blocks of the same input are tried for a partition.
const maxTries = 3

// A Reuse links and describes the blocks of one load. It is not safe for concurrent use.
type Reuse struct {
	loader  *load.Loader
	sums    *Sums
	plan    *load.Plan
	staging store.Staging

	settings string          // that determine the blocks
	files    [][]source.File // by partition
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
	if err != nil || len(former) == 0 || r.off || !r.canLink(former) {
		return nil, 0, ctx.Err()
	}
	if err := r.heads.learn(ctx, atOnce, r.distinct(want), r.head); err != nil {
		return nil, 0, err
	}
	outlines := make(map[string]bool)
	for _, f := range former {
		outlines[f.Outline] = true
	}
	outline := r.hasher(r.heads)
	similar := slices.DeleteFunc(slices.Clone(want), func(p int) bool { return !outlines[outlineOf(outline(p))] }) // there is none of ""
	if err := r.learnChecksums(ctx, similar); err != nil {
		return nil, 0, err
	}
	blocks := make(map[string][]store.Former)
	for _, f := range former {
		if len(blocks[f.Hash]) < maxTries {
			blocks[f.Hash] = append(blocks[f.Hash], f)
		}
	}
	linked, bytes, err = r.linkAll(ctx, similar, blocks)
	if err == nil && len(linked) > 0 {
		err = r.loader.Verify(ctx, r.plan)
	}
	if err != nil {
		for _, m := range linked {
			_ = r.staging.RemoveBlock(m.Partition) // the store removes leftover files at its next start
		}
		return nil, 0, err
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

// learnChecksums learns the checksums of the files of partitions.
func (r *Reuse) learnChecksums(ctx context.Context, partitions []int) error {
	workers := atOnce
	if r.sums.checksummer == nil {
		workers = runtime.GOMAXPROCS(0)
	}
	return r.checksums.learn(ctx, workers, r.distinct(partitions), r.checksum)
}

// linkAll links what it can. The error is that of ctx.
func (r *Reuse) linkAll(ctx context.Context, partitions []int, former map[string][]store.Former) (linked []store.Made, bytes int64, err error) {
	made := make([]store.Made, len(partitions))
	tries := make([][]store.Former, len(partitions))
	identity := r.hasher(r.checksums)
	for i, p := range partitions {
		tries[i] = former[identity(p)] // there is none of ""
	}
	var size atomic.Int64
	err = parallel.Run(ctx, min(runtime.GOMAXPROCS(0), len(partitions)), len(partitions), func(ctx context.Context, i int) error {
		for _, f := range tries[i] {
			if n, err := r.link(ctx, f, partitions[i]); err == nil {
				made[i] = f.Made
				size.Add(n)
				return nil
			}
		}
		return ctx.Err()
	})
	linked = slices.DeleteFunc(made, func(m store.Made) bool { return m.Hash == "" })
	return linked, size.Load(), err
}

// link links one block, compares all its checksums, and returns its size in bytes.
func (r *Reuse) link(ctx context.Context, f store.Former, partition int) (size int64, err error) {
	if f.Partition != partition {
		return 0, fmt.Errorf("%s is not of partition %d", f.Path, partition)
	}
	name, err := r.staging.LinkBlock(f)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = r.staging.RemoveBlock(partition) // the store removes leftover files at its next start
		}
	}()
	b, err := blocks.Open(name)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	if p := b.Properties(); !f.Is(p) || p.Partitions != r.plan.Partitions {
		return 0, fmt.Errorf("%s is not the block that was recorded", f.Path)
	}
	return b.Size(), b.ScrubContent(ctx, nil)
}

// Made returns what finished blocks were made from, for later loads. It has to be called before they are published. What cannot be known is
// left out, and only makes later loads load these partitions again.
func (r *Reuse) Made(ctx context.Context, partitions []int) (all []store.Made) {
	if r.off {
		return nil
	}
	files := r.distinct(partitions)
	if r.heads.learn(ctx, atOnce, files, r.head) != nil {
		return nil
	}
	for _, f := range files { // what was read last is in the blocks
		if sum := r.sums.sum(f); sum != "" && r.plan.Format != load.FormatBlocks { // of finished blocks, the manifest has the hash
			r.checksums[f.Name] = sum
		}
	}
	if r.learnChecksums(ctx, partitions) != nil {
		return nil
	}
	identity, outline := r.hasher(r.checksums), r.hasher(r.heads)
	for _, p := range partitions {
		m := store.Made{Partition: p, Hash: identity(p), Outline: outlineOf(outline(p))}
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
