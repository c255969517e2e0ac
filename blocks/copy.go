package blocks

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"
)

const (
	// copySpan is how many bytes of a file CopyTo reads at a time.
	copySpan = 256 << 10
	// sampledKeys is how many keys of a copy are compared with its partition.
	sampledKeys = 64
)

// CopyTo writes the file of the block to w, as it is, from its beginning to its end. It calls wait before every read with
// its length in bytes, and leaves what of the file is in memory as it finds it, as Scrub does. Nothing is checked:
// whoever receives the file calls CheckCopy. Errors are those of w, of wait, of the disk, or ErrBusy.
func (r *Reader) CopyTo(w io.Writer, wait func(bytes int) error) error {
	spans := spanReader{pace: wait, scrub: true}
	return spans.each(r, 0, r.size, copySpan, func(b []byte) error {
		_, err := w.Write(b)
		return err
	})
}

// A Hash is an io.Writer that hashes the file of a block while it is copied, so that nothing of it is read again to check the copy.
type Hash struct {
	sum  xxh3.Hasher
	left int64 // bytes before the footer, which has their hash
}

// NewHash returns the Hash of a file of size bytes.
func NewHash(size int64) *Hash { return &Hash{left: size - footerSize} }

// Write hashes the next bytes of the file. It never fails.
func (h *Hash) Write(p []byte) (int, error) {
	n := min(int64(len(p)), max(0, h.left))
	h.left -= n
	_, _ = h.sum.Write(p[:n])
	return len(p), nil
}

// Hash returns what the footer says of the bytes before it: their XXH3 of 128 bits, in hexadecimal digits. It names the file, but only
// CheckCopy and CheckHash compare it with these bytes.
func (r *Reader) Hash() string { return hex.EncodeToString(r.footer.hash[:]) }

// CheckHash reads the file and compares its hash with the one in its footer. Another one is ErrCorrupt.
func (r *Reader) CheckHash(ctx context.Context) error {
	h := NewHash(r.size)
	if err := r.CopyTo(h, func(int) error { return ctx.Err() }); err != nil {
		return err
	}
	return r.checkHash(h)
}

func (r *Reader) checkHash(h *Hash) error {
	if sum := h.sum.Sum128().Bytes(); sum != r.footer.hash {
		return r.corrupt(-1, 0, fmt.Errorf("the hash of its bytes is %x, and %x in its footer", sum, r.footer.hash))
	}
	return nil
}

// CheckCopy checks that the file, whose bytes h has hashed, is as a Writer wrote it, and the block of a partition: by its properties and, for a sample of its
// keys, by the function of, which returns the partition of a key. Otherwise the error is ErrCorrupt, naming the first page that is bad if there is one.
func (r *Reader) CheckCopy(ctx context.Context, h *Hash, partition, partitions int, of func(key []byte, partitions int) int) error {
	if err := r.checkHash(h); err != nil {
		return cmp.Or(r.Verify(ctx), err)
	}
	if p := r.props; p.Partition != partition || p.Partitions != partitions {
		return r.corrupt(-1, r.footer.properties.offset, fmt.Errorf("it is partition %d of %d, and not %d of %d", p.Partition, p.Partitions, partition, partitions))
	}
	it := r.IterWithin(nil, nil, minSpan)
	for i := 0; i < r.props.Pages; i += 1 + r.props.Pages/sampledKeys {
		if it.next = i; !it.load() || !it.Next() {
			return it.Err()
		}
		if p := of(it.Key(), partitions); p != partition {
			return r.corrupt(i, r.index.Location(i).Offset(), fmt.Errorf("the key %.40q belongs to partition %d", it.Key(), p))
		}
	}
	return nil
}
