package version

import (
	"sequins/blocks"
	"sequins/shard"
)

// Partitioner returns the function that maps the version's keys to partitions.
func (h *Handle) Partitioner() shard.Partitioner { return h.info.Partitioner }

// Place returns where a key would lie in the local block of a partition. ok is false if the partition is not on this
// node, if the block does not support it, or if no page of the block can hold the key.
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
