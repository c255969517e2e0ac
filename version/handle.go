package version

import (
	"errors"
	"time"

	"sequins/blocks"
)

// ErrNotLocal says that a partition is not on this node.
var ErrNotLocal = errors.New("the partition is not on this node")

// A Handle is a counted reference to a version that can be read. While it is
// held, nothing of the version is closed. It is the version itself, seen by a
// reader, so that getting one allocates nothing; several requests that hold
// the same version have the same *Handle, and each has to release it once.
type Handle Version

// Version returns the name of the version.
func (h *Handle) Version() string { return h.info.Name }

// Plan returns what the version's blocks are loaded by; "" if that is not
// known.
func (h *Handle) Plan() string { return h.info.Plan }

// Partitions returns how many partitions the version has; 0 if it is empty.
func (h *Handle) Partitions() int { return len(h.blocks) }

// Partition returns the partition that a key belongs to.
func (h *Handle) Partition(key []byte) int {
	return h.info.Partitioner.Partition(key, len(h.blocks))
}

// Get looks a key up in a partition. The value is valid until s is used again
// or the handle is released. The error is ErrNotLocal if the partition is not
// here, and blocks.ErrCorrupt if its block is damaged; that has then been
// reported.
func (h *Handle) Get(partition int, key []byte, s *blocks.Scratch) (blocks.Value, bool, error) {
	if len(h.blocks) == 0 {
		return blocks.Value{}, false, nil
	}
	if uint(partition) >= uint(len(h.blocks)) {
		return blocks.Value{}, false, ErrNotLocal
	}
	b := h.blocks[partition].Load()
	if b == nil {
		return blocks.Value{}, false, ErrNotLocal
	}
	value, found, err := b.Get(key, s)
	if err != nil {
		(*Version)(h).report(b, partition, err)
	}
	return value, found, err
}

// Report says that reading a value of the partition after Get has ended in
// err. If the block is damaged it is loaded again.
func (h *Handle) Report(partition int, err error) {
	if uint(partition) >= uint(len(h.blocks)) {
		return
	}
	if b := h.blocks[partition].Load(); b != nil {
		(*Version)(h).report(b, partition, err)
	}
}

// Peers returns the addresses of other nodes that hold a partition. The result
// is not to be changed.
func (h *Handle) Peers(partition int) []string {
	return h.info.Cluster.Peers(h.info.DB, h.info.Name, partition)
}

// LastModified returns the newest modification time of the version's files in
// the source.
func (h *Handle) LastModified() time.Time { return h.info.LastModified }

// Release lets go of the version. The handle and the values from it are not to
// be used any more.
func (h *Handle) Release() { (*Version)(h).release() }
