package version

import (
	"sequins/blocks"
	"sequins/shard"
)

// Partitioner returns the function by which the version's keys are cut into partitions.
func (h *Handle) Partitioner() shard.Partitioner { return h.info.Partitioner }

// Place returns where in the local block of a partition a key lies if it is there at all. ok is false where
// the partition is not here, where the block cannot say, and where no page of it can hold the key.
func (h *Handle) Place(partition int, key []byte) (place blocks.Place, ok bool) {
	if uint(partition) >= uint(len(h.blocks)) {
		return blocks.Place{}, false
	}
	s := h.blocks[partition].Load()
	if s == nil {
		return blocks.Place{}, false
	}
	b, ok := s.Block.(interface {
		Place(key []byte) (blocks.Place, bool)
	})
	if !ok {
		return blocks.Place{}, false
	}
	return b.Place(key)
}
