package main

import (
	"fmt"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/ristretto/v2/z"

	"sequins/bench/internal/data"
)

// badgerDB is a tree of sorted tables in maps, filled by its stream writer, which leaves one level of
// tables that do not overlap, and read in one long transaction.
type badgerDB struct {
	db  *badger.DB
	txn *badger.Txn
}

func (b *badgerDB) String() string { return "badger" }

func badgerOptions(path string) badger.Options {
	return badger.DefaultOptions(path).WithLogger(nil).WithCompression(options.None).WithBlockCacheSize(0).
		WithMetricsEnabled(false).WithDetectConflicts(false)
}

func (b *badgerDB) build(c *data.Cache, s data.Spec) (string, error) {
	return c.Get(fmt.Sprintf("%v badger", s), s.Size()*11/10+64<<20, func(path string) error {
		db, err := badger.Open(badgerOptions(path))
		if err != nil {
			return err
		}
		if err := fillBadger(db, s); err != nil {
			db.Close()
			return err
		}
		return db.Close()
	})
}

func fillBadger(db *badger.DB, s data.Spec) error {
	w := db.NewStreamWriter()
	if err := w.Prepare(); err != nil {
		return err
	}
	buf := z.NewBuffer(8<<20, "bench")
	defer func() { _ = buf.Release() }() // gives memory back
	err := s.Each(func(key, value []byte) error {
		badger.KVToBuffer(&pb.KV{Key: key, Value: value, Version: 1, StreamId: 1}, buf)
		if buf.LenNoPadding() < 4<<20 {
			return nil
		}
		err := w.Write(buf)
		buf.Reset()
		return err
	})
	if err == nil {
		err = w.Write(buf)
	}
	if err != nil {
		w.Cancel()
		return err
	}
	return w.Flush()
}

func (b *badgerDB) open(path string) (err error) {
	if b.db, err = badger.Open(badgerOptions(path).WithReadOnly(true)); err != nil {
		return err
	}
	b.txn = b.db.NewTransaction(false)
	return nil
}

func (b *badgerDB) get(key []byte) (value []byte, ok bool, err error) {
	item, err := b.txn.Get(key)
	if err == badger.ErrKeyNotFound {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	err = item.Value(func(v []byte) error { value = v; return nil })
	return value, true, err
}

func (b *badgerDB) close() error {
	b.txn.Discard()
	return b.db.Close()
}
