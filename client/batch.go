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
		if len(b) >= wire.LengthSize && binary.BigEndian.Uint32(b) == wire.Absent {
			b = b[wire.LengthSize:]
			continue
		}
		var ok bool
		if values[i], b, ok = wire.CutFrame(b); !ok {
			return nil, errBatch
		}
		if size := len(values[i]); int64(size) > limit {
			return nil, fmt.Errorf("%w: a value of %d bytes, and the client's limit is %d", ErrTooLarge, size, limit)
		}
	}
	if len(b) > 0 {
		return nil, errBatch
	}
	return values, nil
}
