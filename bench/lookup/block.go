package main

import (
	"fmt"

	"sequins/bench/internal/data"
	"sequins/blocks"
)

// block is our own: a block of one partition, with an own file for each codec and page size.
type block struct {
	codec    blocks.Compression
	pageSize int

	r       *blocks.Reader
	scratch blocks.Scratch
	batch   blocks.BatchScratch
	results []blocks.Result
}

func (b *block) String() string {
	return fmt.Sprintf("sequins %v %dK", b.codec, b.pageSize>>10)
}

// build writes the block anew in each run: the writer is under test too.
func (b *block) build(c *data.Cache, s data.Spec) (string, error) {
	return c.Fresh(fmt.Sprintf("%v %v.block", s, b), s.Size()*5/4+1<<20, func(path string) error {
		return s.WriteBlock(path, blocks.WriterOptions{Partitions: 1, Compression: b.codec, BlockSize: b.pageSize, TempDir: c.Dir()})
	})
}

func (b *block) open(path string) (err error) {
	b.r, err = blocks.Open(path)
	return err
}

func (b *block) get(key []byte) ([]byte, bool, error) {
	v, ok, err := b.r.Get(key, &b.scratch)
	return v.Bytes(), ok, err
}

func (b *block) getBatch(keys [][]byte, found func(value []byte)) error {
	if len(b.results) < len(keys) {
		b.results = make([]blocks.Result, len(keys))
	}
	b.batch.Reset()
	b.r.GetBatch(keys, b.results, &b.batch)
	for _, r := range b.results[:len(keys)] {
		if r.Err != nil {
			return r.Err
		}
		if r.Found {
			found(r.Value.Bytes())
		}
	}
	return nil
}

func (b *block) close() error { return b.r.Close() }
