package load

import (
	"errors"
	"fmt"

	"sequins/blocks"
	"sequins/internal/fsys"
)

// A builder writes the block of one partition.
type builder struct {
	job       *job
	partition int
	file      fsys.File // nil once finished or discarded
	w         *blocks.Writer
}

func (j *job) newBuilder(partition int) (*builder, error) {
	file, err := j.target.Staging.CreateBlock(partition)
	if err != nil {
		return nil, fmt.Errorf("block %d: %w", partition, err)
	}
	b := &builder{job: j, partition: partition, file: file}
	b.w, err = blocks.NewWriter(newWriteback(file), blocks.WriterOptions{
		Partition: partition, Partitions: j.plan.Partitions,
		Compression: j.opts.Compression, BlockSize: j.opts.BlockSize, TempDir: j.target.Staging.Temp(),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("block %d: %w", partition, err), j.target.Staging.DiscardBlock(file))
	}
	return b, nil
}

// add appends a record. Its key must be greater than the previous one.
func (b *builder) add(key, value []byte) error {
	if err := b.w.Add(key, value); err != nil {
		return fmt.Errorf("block %d: %w", b.partition, err)
	}
	return nil
}

// publish finishes the block and passes it to the publisher.
func (b *builder) publish() error {
	if madeFrom := b.job.target.MadeFrom; madeFrom != nil {
		b.w.SetMadeFrom(madeFrom(b.partition))
	}
	if _, err := b.w.Finish(); err != nil {
		return fmt.Errorf("block %d: %w", b.partition, err)
	}
	b.job.publisher.finish(b.file, b.partition)
	b.file = nil
	return nil
}

// discard removes an unfinished block. Errors are ignored: the store removes leftover files at its next
// start.
func (b *builder) discard() {
	if b.file == nil {
		return
	}
	b.w.Abort()
	_ = b.job.target.Staging.DiscardBlock(b.file)
	b.file = nil
}
