package client

import (
	"encoding/binary"
	"errors"
	"fmt"

	"sequins/internal/wire"
)

var errBatch = errors.New("the answer has not one value for each key")

// encodeBatch renders keys as the body of a request.
func encodeBatch(keys [][]byte) ([]byte, error) {
	size := 0
	for _, key := range keys {
		if err := checkKey(key); err != nil {
			return nil, err
		}
		size += wire.LengthSize + len(key)
	}
	b := make([]byte, 0, size)
	for _, key := range keys {
		b = wire.AppendFrame(b, key)
	}
	return b, nil
}

// decodeBatch splits the body of an answer into n values of at most limit bytes, which share its memory. The value of
// an absent key is nil.
func decodeBatch(b []byte, n int, limit int64) ([][]byte, error) {
	if len(b)/wire.LengthSize < n {
		return nil, errBatch
	}
	values := make([][]byte, n)
	for i := range values {
		if len(b) < wire.LengthSize {
			return nil, errBatch
		}
		size := binary.BigEndian.Uint32(b)
		b = b[wire.LengthSize:]
		switch {
		case size == wire.Absent:
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
