package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	sum, err := c.transfer(ctx, out)
	if err != nil {
		return err
	}
	if hex.EncodeToString(sum) != c.want.SHA256 {
		return c.differs(ctx, out.Name(), sum)
	}
	if err := c.check(ctx, out.Name()); err != nil {
		return err
	}
	return c.report(ctx, tally{files: 1, records: c.want.Records - c.records})
}

// transfer copies the bytes and returns their hash.
func (c *copier) transfer(ctx context.Context, out fsys.File) (sum []byte, err error) {
	body, err := c.Open(ctx, c.plan, c.file, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	in := &meter{r: body, size: c.file.Size, path: c.path}
	to, hash := newWriteback(out), sha256.New()
	buffer := make([]byte, copyBuffer)
	for {
		n, err := in.Read(buffer)
		hash.Write(buffer[:n]) // never fails
		if _, werr := to.Write(buffer[:n]); werr != nil {
			return nil, fmt.Errorf("block %d: %w", c.partition, werr)
		}
		share := float64(in.n) / float64(max(1, c.file.Size)) // of the block's records
		news := tally{bytes: int64(n), fetched: int64(n), records: min(int64(float64(c.want.Records)*share), c.want.Records) - c.records}
		c.records += news.records
		if rerr := c.report(ctx, news); rerr != nil {
			return nil, rerr
		}
		if err == io.EOF {
			return hash.Sum(nil), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// check opens the copied block, as the store will, and compares its properties with the manifest and its keys with the partitioner. The
// manifest vouches for the bytes, but another release or program may have computed the partitions of the keys differently.
func (c *copier) check(ctx context.Context, copied string) error {
	r, err := blocks.Open(copied)
	if errors.Is(err, blocks.ErrCorrupt) {
		return c.corrupt("it is not a block that this release reads", err)
	}
	if err != nil {
		return fmt.Errorf("block %d: %w", c.partition, err)
	}
	if err := c.checkProperties(r.Properties()); err != nil {
		return errors.Join(err, r.Close())
	}
	err = errors.Join(r.VerifyKeys(ctx, func(key []byte) error {
		if p := c.plan.Partitioner.Partition(key, c.plan.Partitions); p != c.partition {
			return fmt.Errorf("by the partitioner %s, the key %.40q belongs to partition %d", c.plan.Partitioner, key, p)
		}
		return nil
	}), r.Close())
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, blocks.ErrCorrupt):
		return c.corrupt("it is not what the manifest says", err)
	}
	return fmt.Errorf("block %d: %w", c.partition, err)
}

func (c *copier) checkProperties(p blocks.Properties) error {
	if p.Partition != c.partition || p.Partitions != c.plan.Partitions || p.Records != c.want.Records || p.ContentHash != c.want.ContentHash {
		return c.corrupt(fmt.Sprintf("it is partition %d of %d with %d records and the content hash %s, and partition %d of %d with %d and %s in %s", p.Partition, p.Partitions,
			p.Records, p.ContentHash, c.partition, c.plan.Partitions, c.want.Records, c.want.ContentHash, source.BlocksFile), nil)
	}
	if p.MadeFrom != "" { // by which a later version would take the block for that of its own files
		return c.corrupt("it says what it was made from, which finished blocks do not", nil)
	}
	return nil
}

// differs returns the error for a block with another hash than the manifest's. It says where the damage is if the block's own
// checksums tell.
func (c *copier) differs(ctx context.Context, copied string, sum []byte) error {
	reason := fmt.Sprintf("the SHA-256 of its bytes from offset 0 to %d is %x, and %s in %s", c.file.Size, sum, c.want.SHA256, source.BlocksFile)
	r, err := blocks.Open(copied)
	if err == nil {
		err = errors.Join(r.Verify(ctx), r.Close())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.corrupt(reason, err)
}

// corrupt returns an error of class finished.ErrCorrupt. cause, which may be nil, names the copy of the file.
func (c *copier) corrupt(reason string, cause error) error {
	if cause != nil {
		return fmt.Errorf("%s: %w: %s; in the copy: %w; build it again, as a new version", c.path, finished.ErrCorrupt, reason, cause)
	}
	return fmt.Errorf("%s: %w: %s; build it again, as a new version", c.path, finished.ErrCorrupt, reason)
}
