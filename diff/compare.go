package diff

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"sequins/blocks"
	"sequins/version"
)

// records walks over records in ascending order of their keys. Key and the value are valid until Next.
type records interface {
	Next() bool
	Key() []byte
	// Size is the size of the value, in bytes, and Hash its XXH64. Bytes is the value, or nil if only those are known.
	Size() int64
	Hash() uint64
	Bytes() []byte
	Err() error
}

// local are the records of a block on this node.
type local struct{ *blocks.Iterator }

// Size implements records.
func (l local) Size() int64 { return l.Value().Len() }

// Hash implements records.
func (l local) Hash() uint64 {
	if l.Value().Large() {
		return l.Value().Hash()
	}
	return xxhash.Sum64(l.Value().Bytes())
}

// Bytes implements records.
func (l local) Bytes() []byte {
	if l.Value().Large() {
		return nil
	}
	return l.Value().Bytes()
}

// checkEvery is the number of records after which a comparison looks whether it is still wanted.
const checkEvery = 4096

// emit receives the differences; nil if nobody wants them.
type emit func(op Op, key []byte) error

// compare counts the differences between the records of two versions.
func (r *Row) compare(ctx context.Context, old, now records, each emit) error {
	haveOld, haveNew := old.Next(), now.Next()
	for n := 0; haveOld || haveNew; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		order := 0
		switch {
		case !haveNew:
			order = -1
		case !haveOld:
			order = 1
		default:
			order = bytes.Compare(old.Key(), now.Key())
		}
		if err := r.note(order, old, now, each); err != nil {
			return err
		}
		if order <= 0 {
			haveOld = old.Next()
		}
		if order >= 0 {
			haveNew = now.Next()
		}
	}
	if err := old.Err(); err != nil {
		return err
	}
	return now.Err()
}

// note counts one key, which is only in the old version if order is negative, and only in the new one if it is positive.
func (r *Row) note(order int, old, now records, each emit) error {
	var op Op
	key := now.Key
	if order <= 0 {
		r.OldRecords++
		key = old.Key
	}
	if order >= 0 {
		r.NewRecords++
	}
	switch {
	case order < 0:
		op = Removed
		r.Removed++
		r.RemovedBytes += int64(len(old.Key())) + old.Size()
	case order > 0:
		op = Added
		r.Added++
		r.AddedBytes += int64(len(now.Key())) + now.Size()
	case sameValue(old, now):
		return nil
	default:
		op = Changed
		r.Changed++
		r.RemovedBytes += old.Size()
		r.AddedBytes += now.Size()
	}
	r.sample(op, key())
	if each == nil {
		return nil
	}
	return each(op, key())
}

// sameValue compares two values: large ones, and those of another node, by their hash.
func sameValue(a, b records) bool {
	if a.Size() != b.Size() {
		return false
	}
	if x, y := a.Bytes(), b.Bytes(); x != nil && y != nil {
		return bytes.Equal(x, y)
	}
	return a.Hash() == b.Hash()
}

// span limits how much of a block is read at once, in bytes.
const span = 256 << 10

// comparePartition compares one partition, of which both blocks are here. Blocks with the same content are not read.
func comparePartition(ctx context.Context, old, now *version.Handle, p int, each emit) (Row, error) {
	row := Row{Partition: p}
	a, b := old.Block(p), now.Block(p)
	if a == nil || b == nil {
		return row, version.ErrNotLocal
	}
	for _, one := range []struct {
		h *version.Handle
		b version.Block
	}{{old, a}, {now, b}} {
		if r, ok := one.b.(interface{ EnsureOpen() error }); ok {
			if err := r.EnsureOpen(); err != nil {
				return row, reported(one.h, p, one.b, err)
			}
		}
	}
	if x, y := a.Properties(), b.Properties(); x.ContentHash != "" && x.ContentHash == y.ContentHash && x.Records == y.Records && x.RawBytes == y.RawBytes {
		row.OldRecords, row.NewRecords, row.Skipped = x.Records, y.Records, true
		return row, nil
	}
	x, y := local{a.IterWithin(nil, nil, span)}, local{b.IterWithin(nil, nil, span)}
	if err := row.compare(ctx, x, y, each); err != nil {
		if x.Err() != nil {
			err = reported(old, p, a, err)
		} else if y.Err() != nil {
			err = reported(now, p, b, err)
		}
		return row, err
	}
	return row, nil
}

// reported reports damage, so that the block is loaded again, and names the partition.
func reported(h *version.Handle, p int, b version.Block, err error) error {
	h.Report(p, b, err)
	return fmt.Errorf("partition %d of version %s: %w", p, h.Version(), err)
}

// compareWhole compares versions that are partitioned differently, of which all partitions are here.
func compareWhole(ctx context.Context, old, now *version.Handle, each emit) (Row, error) {
	row := Row{Partition: -1}
	x, err := newMerged(old)
	if err != nil {
		return row, err
	}
	y, err := newMerged(now)
	if err != nil {
		return row, err
	}
	return row, row.compare(ctx, x, y, each)
}
