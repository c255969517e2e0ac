//go:build lmdb

package main

/*
#cgo LDFLAGS: -llmdb
#cgo noescape lmdb_lookup
#cgo nocallback lmdb_lookup
#include <lmdb.h>
#include <stdlib.h>

// One call from Go for each lookup: the code of mdb_get, and where in the map the value is.
static int lmdb_lookup(MDB_txn *txn, MDB_dbi dbi, char *key, size_t n, MDB_val *value) {
	MDB_val k = { n, key };
	return mdb_get(txn, dbi, &k, value);
}

static int lmdb_append(MDB_txn *txn, MDB_dbi dbi, char *key, size_t n, char *value, size_t m) {
	MDB_val k = { n, key }, v = { m, value };
	return mdb_put(txn, dbi, &k, &v, MDB_APPEND);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"sequins/bench/internal/data"
)

// lmdbDB is a B+ tree in a map, filled in the order of the keys, read in one long transaction. It cannot be read while nothing
// of it is in memory without page faults, as bbolt.
type lmdbDB struct {
	env *C.MDB_env
	txn *C.MDB_txn
	dbi C.MDB_dbi
}

func init() { peersInC = append(peersInC, &lmdbDB{}) }

func (l *lmdbDB) String() string { return "lmdb" }

func lmdbError(code C.int) error {
	if code == C.MDB_SUCCESS {
		return nil
	}
	return errors.New("lmdb: " + C.GoString(C.mdb_strerror(code)))
}

// begin opens the file and a transaction.
func (l *lmdbDB) begin(path string, mapSize int64, envFlags, txnFlags C.uint) error {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	if err := lmdbError(C.mdb_env_create(&l.env)); err != nil {
		return err
	}
	return errors.Join(lmdbError(C.mdb_env_set_mapsize(l.env, C.size_t(mapSize))),
		lmdbError(C.mdb_env_open(l.env, name, C.MDB_NOSUBDIR|C.MDB_NOLOCK|envFlags, 0o644)),
		lmdbError(C.mdb_txn_begin(l.env, nil, txnFlags, &l.txn)),
		lmdbError(C.mdb_dbi_open(l.txn, nil, 0, &l.dbi)))
}

func (l *lmdbDB) build(c *data.Cache, s data.Spec) (string, error) {
	return c.Get(fmt.Sprintf("%v lmdb", s), s.Size()*2, func(path string) error {
		if err := l.begin(path, s.Size()*2+1<<20, 0, 0); err != nil {
			return err
		}
		defer C.mdb_env_close(l.env)
		if err := s.Each(func(key, value []byte) error {
			return lmdbError(C.lmdb_append(l.txn, l.dbi, (*C.char)(unsafe.Pointer(&key[0])), C.size_t(len(key)), (*C.char)(unsafe.Pointer(&value[0])), C.size_t(len(value))))
		}); err != nil {
			return err
		}
		return lmdbError(C.mdb_txn_commit(l.txn))
	})
}

func (l *lmdbDB) open(path string) error {
	return l.begin(path, 0, C.MDB_RDONLY|C.MDB_NORDAHEAD, C.MDB_RDONLY) // 0: as large as the file
}

func (l *lmdbDB) get(key []byte) ([]byte, bool, error) {
	var value C.MDB_val
	code := C.lmdb_lookup(l.txn, l.dbi, (*C.char)(unsafe.Pointer(&key[0])), C.size_t(len(key)), &value)
	if code == C.MDB_NOTFOUND {
		return nil, false, nil
	}
	return unsafe.Slice((*byte)(value.mv_data), value.mv_size), code == C.MDB_SUCCESS, lmdbError(code)
}

func (l *lmdbDB) close() error {
	C.mdb_txn_abort(l.txn)
	C.mdb_env_close(l.env)
	return nil
}
