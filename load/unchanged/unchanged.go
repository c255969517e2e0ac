package unchanged

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"sequins/blocks"
	"sequins/internal/parallel"
	"sequins/load"
	"sequins/store"
)

// A Reuse links the blocks of one load, and tells what the others are made from.
type Reuse struct {
	loader  *load.Loader
	sums    *Sums
	plan    *load.Plan
	staging store.Staging

	settings string  // that determine the blocks
	groups   []group // see group; empty if blocks depend on more than their files
	columns  bool    // of directories are part of the values
}

// New returns the Reuse of a load by plan into staging, which ends with ctx. The loader reads from sums.
func New(ctx context.Context, loader *load.Loader, sums *Sums, plan *load.Plan, staging store.Staging) *Reuse {
	r := &Reuse{loader: loader, sums: sums, plan: plan, staging: staging}
	fields := plan.Manifest().Fields
	r.columns = fields != nil && fields.PartitionColumns
	settings, files := loader.MadeFrom(plan)
	r.settings = settings
	for _, of := range files {
		r.groups = append(r.groups, group{
			heads: sync.OnceValue(func() string { return r.hashFiles(ctx, of, r.head) }),
			sums:  sync.OnceValue(func() string { return r.hashFiles(ctx, of, r.checksum) }),
			read:  sync.OnceValue(func() string { return r.hashFiles(ctx, of, r.checksum) }),
		})
	}
	return r
}

// Link makes blocks of those of some partitions whose input is that of a block of another content on this disk, and returns their partitions, in
// ascending order, with the size of the blocks in bytes. The blocks are finished, as those of a load, and the source has been listed again and still
// has the files of the plan. An error is that of ctx or of load.Loader.Verify; then no block is left.
func (r *Reuse) Link(ctx context.Context, want []int) (linked []int, bytes int64, err error) {
	former, err := r.staging.Former()
	if err != nil || len(r.groups) == 0 && r.plan.Format != load.FormatBlocks {
		return nil, 0, ctx.Err()
	}
	sizes := make([]int64, len(want))
	err = parallel.Run(ctx, min(atOnce, len(want)), len(want), func(ctx context.Context, i int) error {
		sizes[i] = r.link(ctx, former, want[i])
		return ctx.Err()
	})
	for i, size := range sizes {
		if size > 0 {
			linked, bytes = append(linked, want[i]), bytes+size
		}
	}
	if err == nil && len(linked) > 0 {
		err = r.loader.Verify(ctx, r.plan)
	}
	if err != nil {
		for _, p := range linked {
			_ = r.staging.RemoveBlock(p) // the store removes leftover files at its next start
		}
		return nil, 0, err
	}
	return linked, bytes, nil
}

// link links the first whole block of a partition, in the directories of other contents, that was made from the same input. It returns the size of the block in
// bytes, or 0 without such a block. The link comes first: on a file system without links, reading the files for their hashes is in vain.
func (r *Reuse) link(ctx context.Context, former []string, p int) (size int64) {
	for _, dir := range former {
		name, err := r.staging.LinkBlock(dir, p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0
		}
		if size := r.check(ctx, name, p); size > 0 {
			return size
		}
		_ = r.staging.RemoveBlock(p) // the store removes leftover files at its next start
	}
	return 0
}

// check returns the size of the block in a file if it was made from the input of a partition and is whole; otherwise 0.
func (r *Reuse) check(ctx context.Context, name string, p int) (size int64) {
	b, err := blocks.Open(name)
	if err != nil {
		return 0
	}
	defer b.Close() //nolint:errcheck // it is only read
	made := b.Properties().MadeFrom
	if want, ok := r.plan.Finished(p); ok {
		if b.Hash() != want.Hash || b.Properties().Records != want.Records {
			return 0
		}
	} else if len(made) <= outlineDigits || made[:outlineDigits] != r.outline(p) || made[outlineDigits:] != r.input(p, r.group(p).sums()) {
		return 0
	}
	hash := blocks.NewHash(b.Size())
	if b.CopyTo(hash, func(int) error { return ctx.Err() }) != nil || b.CheckCopy(ctx, hash, p, r.plan.Partitions, r.plan.Partitioner.Partition) != nil {
		return 0
	}
	return b.Size()
}

// ReadAhead reads the files of some partitions for MadeFrom, until ctx ends. It runs beside the load and is only for files that a load reads in pieces and of
// which the source has no checksums: otherwise each block would wait for that when it is finished.
func (r *Reuse) ReadAhead(ctx context.Context, partitions []int) {
	if r.plan.Format != load.FormatParquet || r.sums.checksummer != nil || len(r.groups) == 0 {
		return
	}
	_ = parallel.Run(ctx, min(atOnce, len(partitions)), len(partitions), func(ctx context.Context, i int) error {
		r.group(partitions[i]).read()
		return ctx.Err()
	})
}

// MadeFrom returns what the block of a partition whose files have been loaded was made from, for later loads: an outline, which a load can tell from the beginnings of its files, and
// a hash. It is "" if that cannot be known, which only makes later loads load the partition again.
func (r *Reuse) MadeFrom(p int) string {
	if len(r.groups) == 0 {
		return ""
	}
	outline, sum := r.outline(p), r.input(p, r.group(p).read())
	if outline == "" || sum == "" {
		return ""
	}
	return outline + sum
}

// outline returns a hash of what is known of the input of a partition before its files are read; "" if that cannot be known.
func (r *Reuse) outline(p int) string {
	hash := r.input(p, r.group(p).heads())
	return hash[:min(outlineDigits, len(hash))]
}
