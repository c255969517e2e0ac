package client

import (
	"errors"
	"fmt"
	"math"

	gobinary "encoding/binary"
)

// absent is the length that stands for an absent key.
const absent = math.MaxUint32

var errBatch = errors.New("the answer has not one value for each key")

// encodeBatch renders keys as the body of a request: each is its length, as four bytes in big-endian order, and its
// bytes.
func encodeBatch(keys [][]byte) ([]byte, error) {
	size := 0
	for _, key := range keys {
		if err := checkKey(key); err != nil {
			return nil, err
		}
		size += 4 + len(key)
	}
	b := make([]byte, 0, size)
	for _, key := range keys {
		b = gobinary.BigEndian.AppendUint32(b, uint32(len(key)))
		b = append(b, key...)
	}
	return b, nil
}

// decodeBatch splits the body of an answer into n values of at most limit bytes, which share its memory. The value of
// an absent key is nil.
func decodeBatch(b []byte, n int, limit int64) ([][]byte, error) {
	if len(b)/4 < n {
		return nil, errBatch
	}
	values := make([][]byte, n)
	for i := range values {
		if len(b) < 4 {
			return nil, errBatch
		}
		size := gobinary.BigEndian.Uint32(b)
		b = b[4:]
		switch {
		case size == absent:
			continue
		case int64(size) > limit:
			return nil, fmt.Errorf("%w: a value of %d bytes, and the client's limit is %d", ErrTooLarge, size, limit)
		case uint64(size) > uint64(len(b)):
			return nil, errBatch
		}
		values[i], b = b[:size:size], b[size:]
	}
	if len(b) > 0 {
		return nil, errBatch
	}
	return values, nil
}
