package main

import (
	"context"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"sequins/bench/internal/data"
)

// pebbleTable is one sorted table of pebble's newest format, with a Bloom filter of 10 bits a key and an
// index of one level, read through one iterator that is kept. The block cache holds more than the data, so
// that, warm, nothing is read or unpacked twice.
type pebbleTable struct {
	snappy bool

	cache *pebble.Cache
	free  func()
	r     *sstable.Reader
	iter  sstable.Iterator
}

func (p *pebbleTable) String() string {
	if p.snappy {
		return "pebble snappy"
	}
	return "pebble"
}

var pebbleFilter = bloom.FilterPolicy(10)

func (p *pebbleTable) build(c *data.Cache, s data.Spec) (string, error) {
	return c.Get(fmt.Sprintf("%v %v", s, p), s.Size()*5/4+1<<20, func(path string) error {
		f, err := vfs.Default.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		o := sstable.WriterOptions{BlockSize: 4096, IndexBlockSize: math.MaxInt32, FilterPolicy: pebbleFilter,
			FilterType: sstable.TableFilter, Compression: sstable.NoCompression, TableFormat: sstable.TableFormatMax}
		if p.snappy {
			o.Compression = sstable.SnappyCompression
		}
		w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), o)
		if err := s.Each(w.Set); err != nil {
			w.Close()
			return err
		}
		return w.Close() // which syncs
	})
}

func (p *pebbleTable) open(path string) error {
	f, err := vfs.Default.Open(path, vfs.RandomReadsOption)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return err
	}
	p.cache = pebble.NewCache(st.Size()*2 + 64<<20)
	handle := p.cache.NewHandle()
	p.free = func() { handle.Close(); p.cache.Unref() }
	o := sstable.ReaderOptions{Filters: map[string]sstable.FilterPolicy{pebbleFilter.Name(): pebbleFilter}}
	o.CacheOpts.CacheHandle = handle
	o.CacheOpts.FileNum = 1
	if p.r, err = sstable.NewReader(context.Background(), readable, o); err != nil {
		return err
	}
	p.iter, err = p.r.NewPointIter(context.Background(), sstable.IterOptions{FilterBlockSizeLimit: sstable.AlwaysUseFilterBlock,
		Env: sstable.NoReadEnv, ReaderProvider: sstable.MakeTrivialReaderProvider(p.r)})
	return err
}

func (p *pebbleTable) get(key []byte) ([]byte, bool, error) {
	kv := p.iter.SeekPrefixGE(key, key, 0)
	if kv == nil {
		return nil, false, p.iter.Error()
	}
	if string(kv.K.UserKey) != string(key) {
		return nil, false, nil
	}
	v, _, err := kv.V.Value(nil)
	return v, true, err
}

func (p *pebbleTable) close() error {
	if err := p.iter.Close(); err != nil {
		return err
	}
	err := p.r.Close()
	p.free()
	return err
}
