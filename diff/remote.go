package diff

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"

	"sequins/blocks"
	"sequins/version"
)

// A node that has only one of two blocks gets the keys of the other from another node, each with the size and the hash of
// its value: the length of the key, the key and the size of the value as in encoding/binary, with unsigned varints, and
// eight bytes of the hash, little endian. The length endOfKeys ends them.
const endOfKeys = blocks.MaxKey + 1

// writeKeys writes the keys of a partition of a version. The error is version.ErrNotLocal if it is not here.
func writeKeys(ctx context.Context, w http.ResponseWriter, h *version.Handle, p int) error {
	b := h.Block(p)
	if b == nil {
		return version.ErrNotLocal
	}
	records := local{b.IterWithin(nil, nil, span)}
	more := records.Next()
	if err := records.Err(); err != nil {
		return reported(h, p, b, err)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	out := bufio.NewWriterSize(w, 64<<10)
	for n := 0; more; more = records.Next() {
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return errBroken
		}
		var buf []byte
		buf = binary.AppendUvarint(out.AvailableBuffer(), uint64(len(records.Key())))
		buf = append(buf, records.Key()...)
		buf = binary.AppendUvarint(buf, uint64(records.Size()))
		buf = binary.LittleEndian.AppendUint64(buf, records.Hash())
		if _, err := out.Write(buf); err != nil {
			return errBroken
		}
	}
	if err := records.Err(); err != nil {
		h.Report(p, b, err)
		return errBroken // without the end, the other node knows
	}
	if _, err := out.Write(binary.AppendUvarint(nil, endOfKeys)); err != nil || out.Flush() != nil {
		return errBroken
	}
	return nil
}

// errBroken means that an answer has begun and does not end.
var errBroken = errors.New("the answer is broken off")

// remote are the records of a block on another node. Close ends the request.
type remote struct {
	r    *bufio.Reader
	body io.Closer
	stop context.CancelFunc
	wait func() // before each read

	key, before []byte
	size        int64
	hash        uint64
	err         error
}

// Next implements records.
func (r *remote) Next() bool {
	if r.err != nil {
		return false
	}
	n, err := binary.ReadUvarint(r.r)
	if err == nil && n == endOfKeys {
		return false
	}
	if err != nil || n > endOfKeys {
		return r.fail(err)
	}
	r.wait()
	first := r.key == nil
	r.key, r.before = r.before, r.key
	r.key = append(r.key[:0], make([]byte, n)...)
	if _, err := io.ReadFull(r.r, r.key); err != nil {
		return r.fail(err)
	}
	if !first && bytes.Compare(r.before, r.key) >= 0 {
		return r.fail(errors.New("keys out of order"))
	}
	size, err := binary.ReadUvarint(r.r)
	if err != nil || size > blocks.MaxValue {
		return r.fail(err)
	}
	var hash [8]byte
	if _, err := io.ReadFull(r.r, hash[:]); err != nil {
		return r.fail(err)
	}
	r.size, r.hash = int64(size), binary.LittleEndian.Uint64(hash[:])
	return true
}

func (r *remote) fail(err error) bool {
	if err == nil {
		err = errors.New("impossible lengths")
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	r.err = fmt.Errorf("the keys of another node cannot be read: %w", err)
	return false
}

// Key implements records.
func (r *remote) Key() []byte { return r.key }

// Size implements records.
func (r *remote) Size() int64 { return r.size }

// Hash implements records.
func (r *remote) Hash() uint64 { return r.hash }

// Bytes implements records.
func (r *remote) Bytes() []byte { return nil }

// Err implements records.
func (r *remote) Err() error { return r.err }

// Close ends the request.
func (r *remote) Close() {
	r.stop()
	_ = r.body.Close() // it was only read
}
