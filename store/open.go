package store

import (
	"context"
	"errors"
	"fmt"

	"sequins/blocks"
	"sequins/internal/parallel"
)

// openAtOnce is the number of blocks of a content that are opened in parallel, to use several disk requests and all
// processors.
const openAtOnce = 16

// Opened is an open block, or the reason why it cannot be opened.
type Opened struct {
	Block *blocks.Reader
	Err   error
}

// OpenAll opens the blocks of partitions.
func (d *Dir) OpenAll(partitions []int) []Opened {
	results := make([]Opened, len(partitions))
	_ = parallel.Run(context.Background(), min(openAtOnce, len(partitions)), len(partitions), func(_ context.Context, i int) error {
		results[i].Block, results[i].Err = d.open(partitions[i])
		return nil
	})
	return results
}

// open opens the block of partition p, and checks that it is of that partition.
func (d *Dir) open(p int) (*blocks.Reader, error) {
	path := d.BlockPath(p)
	r, err := blocks.Open(path)
	if err != nil {
		return nil, err
	}
	if props := r.Properties(); props.Partition != p || props.Partitions != d.manifest.Partitions {
		return nil, errors.Join(damaged(path, fmt.Errorf("is partition %d of %d", props.Partition, props.Partitions)), r.Close())
	}
	return r, nil
}
