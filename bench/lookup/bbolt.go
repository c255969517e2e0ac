package main

import (
	"fmt"

	bolt "go.etcd.io/bbolt"

	"sequins/bench/internal/data"
)

// bboltDB is a B+ tree in a map, with full pages, read in one long transaction.
type bboltDB struct {
	db     *bolt.DB
	tx     *bolt.Tx
	bucket *bolt.Bucket
}

var bucketName = []byte("b")

const bboltBatch = 100_000 // records in a transaction when building

func (b *bboltDB) String() string { return "bbolt" }

func (b *bboltDB) build(c *data.Cache, s data.Spec) (string, error) {
	return c.Get(fmt.Sprintf("%v bbolt", s), s.Size()*3/2, func(path string) error {
		db, err := bolt.Open(path, 0o644, &bolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bolt.FreelistMapType, InitialMmapSize: int(s.Size() * 2)})
		if err != nil {
			return err
		}
		defer db.Close()
		if err := fillBolt(db, s); err != nil {
			return err
		}
		return db.Sync()
	})
}

func fillBolt(db *bolt.DB, s data.Spec) error {
	var tx *bolt.Tx
	var bucket *bolt.Bucket
	n := 0
	err := s.Each(func(key, value []byte) (err error) {
		if n%bboltBatch == 0 {
			if tx != nil {
				if err := tx.Commit(); err != nil {
					return err
				}
			}
			if tx, err = db.Begin(true); err != nil {
				return err
			}
			if bucket, err = tx.CreateBucketIfNotExists(bucketName); err != nil {
				return err
			}
			bucket.FillPercent = 1 // the keys ascend: nothing will ever be put between them
		}
		n++
		return bucket.Put(key, append([]byte(nil), value...)) // kept until the commit
	})
	if err != nil {
		return err
	}
	return tx.Commit()
}

func (b *bboltDB) open(path string) (err error) {
	if b.db, err = bolt.Open(path, 0o644, &bolt.Options{ReadOnly: true}); err != nil {
		return err
	}
	if b.tx, err = b.db.Begin(false); err != nil {
		return err
	}
	if b.bucket = b.tx.Bucket(bucketName); b.bucket == nil {
		return fmt.Errorf("%s: empty", path)
	}
	return nil
}

func (b *bboltDB) get(key []byte) ([]byte, bool, error) {
	v := b.bucket.Get(key)
	return v, v != nil, nil
}

func (b *bboltDB) close() error {
	if err := b.tx.Rollback(); err != nil {
		return err
	}
	return b.db.Close()
}
