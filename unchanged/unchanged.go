package unchanged

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

// A Reuse links and records the blocks of one load. It is not safe for concurrent use.
type Reuse struct {
	*inputs
	loader   *load.Loader
	staging  store.Staging
	recorded map[int]store.Input
	written  int  // number of records that were written last
	off      bool // blocks depend on more than their files
}

// New returns the Reuse of a load by plan into staging. src is the source of the loader, which is above sums; read has its
// limit.
func New(loader *load.Loader, src source.Source, sums *Sums, read source.ReadOptions, plan *load.Plan, staging store.Staging) *Reuse {
	in := &inputs{src: src, sums: sums, plan: plan, read: read,
		heads: make(map[string]string), checksums: make(map[string]string),
		outlines: make(map[*source.File]string), contents: make(map[*source.File]string)}
	m := plan.Manifest()
	in.columns = m.Fields != nil && m.Fields.PartitionColumns
	r := &Reuse{inputs: in, loader: loader, staging: staging, recorded: make(map[int]store.Input)}
	settings, files, ok := loader.Inputs(plan)
	in.settings, in.files, r.off = settings, files, !ok
	for _, input := range staging.Inputs() {
		r.recorded[input.Partition] = input
	}
	return r
}

// Link makes blocks of those of some partitions whose input is that of a block of another version on this disk, and returns them, ascending,
// with the size of their blocks in bytes. The blocks are finished, as those of a load, and the source has been listed again and still
// has the files of the plan. An error is that of ctx or of load.Loader.Verify; then no block is left.
func (r *Reuse) Link(ctx context.Context, want []int) (linked []int, bytes int64, err error) {
	former, err := r.staging.Former()
	if err != nil || len(former) == 0 || r.off || !r.canLink(former) {
		return nil, 0, ctx.Err()
	}
	if err := learn(ctx, atOnce, r.distinct(want), r.heads, r.head); err != nil {
		return nil, 0, err
	}
	similar := r.similar(want, former)
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
		for _, p := range linked {
			_ = r.staging.RemoveBlock(p) // the store removes leftover files at its next start
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

// similar returns those of some partitions of which there are former blocks whose inputs are the same as far as it is known.
func (r *Reuse) similar(want []int, former []store.Former) (similar []int) {
	outlines := make(map[string]bool)
	for _, f := range former {
		outlines[f.Outline] = true
	}
	for _, p := range want {
		if o := r.outline(p); o != "" && outlines[o] {
			similar = append(similar, p)
		}
	}
	return similar
}

// learnChecksums learns the checksums of the files of partitions.
func (r *Reuse) learnChecksums(ctx context.Context, partitions []int) error {
	workers := atOnce
	if r.sums.checksummer == nil {
		workers = runtime.GOMAXPROCS(0)
	}
	return learn(ctx, workers, r.distinct(partitions), r.checksums, r.checksum)
}

// linkAll links what it can. The error is that of ctx.
func (r *Reuse) linkAll(ctx context.Context, partitions []int, former map[string][]store.Former) (linked []int, bytes int64, err error) {
	inputs := make([]store.Input, len(partitions))
	tries := make([][]store.Former, len(partitions))
	for i, p := range partitions {
		tries[i] = former[r.identity(p)] // there is none of ""
	}
	var size atomic.Int64
	err = parallel.Run(ctx, min(runtime.GOMAXPROCS(0), len(partitions)), len(partitions), func(ctx context.Context, i int) error {
		for _, f := range tries[i] {
			if n, err := r.link(ctx, f, partitions[i]); err == nil {
				inputs[i] = f.Input
				size.Add(n)
				return nil
			}
		}
		return ctx.Err()
	})
	for i, p := range partitions {
		if inputs[i].Hash != "" {
			linked = append(linked, p)
			r.recorded[p] = inputs[i]
		}
	}
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

// Record records what finished blocks were made from, for later loads. It has to be called before they are published. A failure only makes later
// loads load the partitions again.
func (r *Reuse) Record(ctx context.Context, partitions []int) {
	if r.off {
		return
	}
	files := r.distinct(partitions)
	if learn(ctx, atOnce, files, r.heads, r.head) != nil {
		return
	}
	for _, f := range files { // what was read last is in the blocks
		if sum := r.sums.sum(f); sum != "" && r.plan.Format != load.FormatBlocks { // of finished blocks, the manifest has the hash
			r.checksums[f.Name] = sum
		}
	}
	if r.learnChecksums(ctx, partitions) != nil {
		return
	}
	clear(r.contents)
	for _, p := range partitions {
		r.record(p)
	}
	if len(r.recorded) > r.written+r.written/8 {
		r.Save()
	}
}

func (r *Reuse) record(p int) {
	delete(r.recorded, p)
	in := store.Input{Partition: p, Hash: r.identity(p), Outline: r.outline(p)}
	if in.Hash == "" || in.Outline == "" {
		return
	}
	b, err := blocks.Open(r.staging.FinishedPath(p))
	if err != nil {
		return
	}
	in.Content, in.Records = b.Properties().ContentHash, b.Properties().Records
	if b.Close() == nil {
		r.recorded[p] = in
	}
}

// Save writes what Link and Record have noted. Record does so now and then; it has to be called after Link and at the end of the load.
func (r *Reuse) Save() {
	if len(r.recorded) == 0 || r.off {
		return
	}
	all := slices.SortedFunc(maps.Values(r.recorded), func(a, b store.Input) int { return a.Partition - b.Partition })
	if r.staging.SetInputs(all) == nil {
		r.written = len(all)
	}
}
