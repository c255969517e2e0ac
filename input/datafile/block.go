package datafile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"sequins/blocks"
)

// block is a block of the local store.
type block struct {
	*blocks.Iterator
	r      *blocks.Reader
	closer io.Closer // of what the reader reads, if it does not close that
}

func (b *block) Kind() Kind         { return Block }
func (b *block) Size() int64        { return b.r.Size() }
func (b *block) Deleted() bool      { return false }
func (b *block) Consumed() int64    { return 0 }
func (b *block) ValueSize() int64   { return b.Value().Len() }
func (b *block) Unloadable() string { return "" }
func (b *block) NullKeys() int64    { return 0 }
func (b *block) Close() error       { return errors.Join(b.r.Close(), b.closer.Close()) }

func (b *block) Describe() []Property {
	p := b.r.Properties()
	return []Property{
		{"partition", fmt.Sprintf("%d of %d", p.Partition, p.Partitions), nil},
		{"records", strconv.FormatInt(p.Records, 10), nil},
		{"bytes of records", strconv.FormatInt(p.RawBytes, 10), nil},
		{"bytes on disk", strconv.FormatInt(b.r.Size(), 10), nil},
		{"pages", fmt.Sprintf("%d of %d bytes", p.Pages, p.BlockSize), nil},
		{"compression", p.Compression, nil},
		{"first key", "", p.FirstKey},
		{"last key", "", p.LastKey},
		{"content hash", p.ContentHash, nil},
	}
}

func (b *block) Place() (index, n int, known bool) {
	p := b.r.Properties()
	return p.Partition, p.Partitions, p.Partitions > 0
}

func (b *block) WriteValue(w io.Writer) error { return writeValue(w, b.Value()) }

func writeValue(w io.Writer, v blocks.Value) (err error) {
	if !v.Large() {
		_, err = w.Write(v.Bytes())
		return err
	}
	section := v.Section(0, v.Len())
	defer func() { err = errors.Join(err, section.Close()) }()
	_, err = io.Copy(w, section)
	return err
}

func (b *block) Get(_ context.Context, key []byte, w io.Writer, _ func(bytes int64)) (bool, error) {
	var scratch blocks.Scratch
	v, found, err := b.r.Get(key, &scratch)
	if err != nil || !found {
		return false, err
	}
	return true, writeValue(w, v)
}

func (b *block) Verify(ctx context.Context, read func(bytes int64)) (int64, error) {
	return b.r.Properties().Records, b.r.VerifyPaced(ctx, func(bytes int) error {
		read(int64(bytes))
		return nil
	})
}
