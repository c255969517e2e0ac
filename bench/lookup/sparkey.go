//go:build sparkey

package main

/*
#cgo LDFLAGS: -lsparkey
#cgo noescape lookup
#cgo nocallback lookup
#include <sparkey/sparkey.h>

// One call from Go for each lookup: -1 for a key that is not there, -2 for an error, or the value's length.
static int64_t lookup(sparkey_hashreader *r, sparkey_logreader *log, sparkey_logiter *it, const uint8_t *key, uint64_t n, uint8_t *out, uint64_t max) {
	uint64_t len;
	if (sparkey_hash_get(r, key, n, it) != SPARKEY_SUCCESS) return -2;
	if (sparkey_logiter_state(it) != SPARKEY_ITER_ACTIVE) return -1;
	if (sparkey_logiter_fill_value(it, log, max, out, &len) != SPARKEY_SUCCESS) return -2;
	return (int64_t)len;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"sequins/bench/internal/data"
)

// sparkeyLog is Spotify's store: a log and a hash table beside it, both mapped.
type sparkeyLog struct {
	name        string
	compression C.sparkey_compression_type

	r    *C.sparkey_hashreader
	iter *C.sparkey_logiter
	log  *C.sparkey_logreader
	out  [1 << 16]byte
}

// Sparkey's own default.
const sparkeyBlock = 4096

func init() {
	peersInC = append(peersInC,
		&sparkeyLog{name: "sparkey", compression: C.SPARKEY_COMPRESSION_NONE},
		&sparkeyLog{name: "sparkey snappy", compression: C.SPARKEY_COMPRESSION_SNAPPY},
		&sparkeyLog{name: "sparkey zstd", compression: C.SPARKEY_COMPRESSION_ZSTD})
}

func (s *sparkeyLog) String() string { return s.name }

func sparkeyError(code C.sparkey_returncode) error {
	if code == C.SPARKEY_SUCCESS {
		return nil
	}
	return errors.New(C.GoString(C.sparkey_errstring(code)))
}

func (s *sparkeyLog) build(c *data.Cache, spec data.Spec) (string, error) {
	if spec.ValueSize > len(s.out) {
		return "", fmt.Errorf("values of %d bytes", spec.ValueSize)
	}
	return c.Get(fmt.Sprintf("%v %v", spec, s), spec.Size()*11/10+int64(spec.Records)*16, func(path string) error {
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		log, index := C.CString(filepath.Join(path, "log.spl")), C.CString(filepath.Join(path, "log.spi"))
		var w *C.sparkey_logwriter
		if err := sparkeyError(C.sparkey_logwriter_create(&w, log, s.compression, sparkeyBlock)); err != nil {
			return err
		}
		if err := spec.Each(func(key, value []byte) error {
			return sparkeyError(C.sparkey_logwriter_put(w, C.uint64_t(len(key)), (*C.uint8_t)(unsafe.Pointer(&key[0])),
				C.uint64_t(len(value)), (*C.uint8_t)(unsafe.Pointer(&value[0]))))
		}); err != nil {
			return err
		}
		if err := sparkeyError(C.sparkey_logwriter_close(&w)); err != nil {
			return err
		}
		return sparkeyError(C.sparkey_hash_write(index, log, 0))
	})
}

func (s *sparkeyLog) open(path string) error {
	log, index := C.CString(filepath.Join(path, "log.spl")), C.CString(filepath.Join(path, "log.spi"))
	if err := sparkeyError(C.sparkey_hash_open(&s.r, index, log)); err != nil {
		return err
	}
	s.log = C.sparkey_hash_getreader(s.r)
	return sparkeyError(C.sparkey_logiter_create(&s.iter, s.log))
}

func (s *sparkeyLog) get(key []byte) ([]byte, bool, error) {
	n := C.lookup(s.r, s.log, s.iter, (*C.uint8_t)(unsafe.Pointer(&key[0])), C.uint64_t(len(key)), (*C.uint8_t)(unsafe.Pointer(&s.out[0])), C.uint64_t(len(s.out)))
	switch n {
	case -1:
		return nil, false, nil
	case -2:
		return nil, false, errors.New("sparkey: lookup failed")
	}
	return s.out[:n], true, nil
}

func (s *sparkeyLog) close() error {
	C.sparkey_logiter_close(&s.iter)
	C.sparkey_hash_close(&s.r)
	return nil
}
