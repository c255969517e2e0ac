package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sequins/blocks"
	"sequins/input/finished"
	"sequins/internal/fsys"
	"sequins/internal/parallel"
	"sequins/source"
)

// copyBuffer is how many bytes of a block are read, hashed and written at a time. They fit into the CPU's cache.
const copyBuffer = 256 << 10

// copyBlocks copies the finished blocks of partitions and checks them. In a plan of finished blocks, file i holds partition i.
func (j *job) copyBlocks(ctx context.Context, todo []int) error {
	j.expect(todo)
	return parallel.Run(ctx, min(j.opts.workers(), len(todo)), len(todo), func(ctx context.Context, i int) error {
		defer j.progress.read(time.Now())
		return j.copyBlock(ctx, todo[i])
	})
}

// copyBlock copies one block, and passes it to the publisher if it is the one of the manifest.
func (j *job) copyBlock(ctx context.Context, partition int) error {
	out, err := j.target.Staging.CreateBlock(partition)
	if err != nil {
		return fmt.Errorf("block %d: %w", partition, err)
	}
	c := &copier{job: j, partition: partition, file: j.plan.Files[partition], want: j.plan.ready.Blocks[partition]}
	c.path = j.src.Path(j.plan.DB, j.plan.Version) + "/" + c.file.Name
	if err := c.copy(ctx, out); err != nil {
		_ = j.target.Staging.DiscardBlock(out) // the store removes leftover files at its next start
		return err
	}
	j.publisher.finish(out, partition)
	return nil
}

// A copier copies one block from the source.
type copier struct {
	*job
	partition int
	file      source.File
	want      finished.Block
	path      string // of the file in the source
	records   int64  // reported so far
}

func (c *copier) copy(ctx context.Context, out fsys.File) error {
	hash := blocks.NewHash(c.file.Size)
	if err := c.transfer(ctx, io.MultiWriter(newWriteback(out), hash)); err != nil {
		return err
	}
	if err := c.check(ctx, out.Name(), hash); err != nil {
		return err
	}
	return c.report(ctx, tally{files: 1, records: c.want.Records - c.records})
}

// transfer copies the bytes.
func (c *copier) transfer(ctx context.Context, to io.Writer) (err error) {
	body, err := c.Open(ctx, c.plan, c.file, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	in := &meter{r: body, size: c.file.Size, path: c.path}
	buffer := make([]byte, copyBuffer)
	for {
		n, err := in.Read(buffer)
		if _, werr := to.Write(buffer[:n]); werr != nil {
			return fmt.Errorf("block %d: %w", c.partition, werr)
		}
		share := float64(in.n) / float64(max(1, c.file.Size)) // of the block's records
		news := tally{bytes: int64(n), fetched: int64(n), records: min(int64(float64(c.want.Records)*share), c.want.Records) - c.records}
		c.records += news.records
		if rerr := c.report(ctx, news); rerr != nil {
			return rerr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// check opens the copied block, as the store will, and compares it with the manifest. Damage is of class finished.ErrCorrupt.
func (c *copier) check(ctx context.Context, copied string, hash *blocks.Hash) error {
	r, err := blocks.Open(copied)
	if err == nil {
		err = errors.Join(c.compare(ctx, r, hash), r.Close())
	}
	if damage, is := errors.AsType[*blocks.CorruptError](err); is {
		damage.Path = "the copy" // which is removed
		err = fmt.Errorf("%w: %w", finished.ErrCorrupt, err)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, finished.ErrCorrupt):
		return fmt.Errorf("%s: %w; build it again, as a new version", c.path, err)
	}
	return fmt.Errorf("block %d: %w", c.partition, err)
}

// compare compares the copied block with the manifest. The hash vouches for the bytes, but another release or program may have computed the partitions of
// the keys differently.
func (c *copier) compare(ctx context.Context, r *blocks.Reader, hash *blocks.Hash) error {
	if err := r.CheckCopy(ctx, hash, c.partition, c.plan.Partitions, c.plan.Partitioner.Partition); err != nil {
		return err
	}
	p := r.Properties()
	if err := c.want.Check(r.Hash(), p.Records); err != nil {
		return err
	}
	if p.MadeFrom != "" { // by which a later version would take the block for that of its own files
		return fmt.Errorf("%w: it says what it was made from, which finished blocks do not", finished.ErrCorrupt)
	}
	return nil
}
