package version

import (
	"errors"

	"sequins/blocks"
)

// ErrNotLocal means that a partition is not on this node.
var ErrNotLocal = errors.New("the partition is not on this node")

// Handle is a counted reference to a readable version. The version is not closed while a handle is held. It is the Version itself under another type,
// so that acquiring one allocates nothing, and its Info says what the version is; concurrent requests share the same *Handle, and each must release it once.
type Handle Version

// ID identifies the version among all that this process has opened: for caches of what was read from it.
func (h *Handle) ID() uint64 { return h.id }

// Partition returns the partition that a key belongs to.
func (h *Handle) Partition(key []byte) int {
	return h.Partitioner.Partition(key, len(h.blocks))
}

// Get looks up a key in a partition. The value is valid until s is used again or the handle is released. The error is ErrNotLocal if the partition is
// not on this node, and wraps blocks.ErrCorrupt if its block is damaged; Get has then reported it.
func (h *Handle) Get(partition int, key []byte, s *blocks.Scratch) (blocks.Value, bool, error) {
	if len(h.blocks) == 0 {
		return blocks.Value{}, false, nil
	}
	b := (*Version)(h).slot(partition)
	if b == nil {
		return blocks.Value{}, false, ErrNotLocal
	}
	value, found, err := b.Get(key, s)
	if err != nil {
		(*Version)(h).report(b, partition, err)
	}
	return value, found, err
}

// Has reports whether a partition is on this node.
func (h *Handle) Has(partition int) bool { return (*Version)(h).slot(partition) != nil }

// GetBatch looks up to blocks.BatchSize keys of one partition up, and sets results[i] for keys[i]; results must be as long as keys. The
// values are valid until s is reset; large ones only until the handle is released. The error is ErrNotLocal if the partition is not on this
// node. Damage, which GetBatch has reported, is in the results.
func (h *Handle) GetBatch(partition int, keys [][]byte, results []blocks.Result, s *blocks.BatchScratch) error {
	b := (*Version)(h).slot(partition)
	if b == nil {
		return ErrNotLocal
	}
	b.GetBatch(keys, results, s)
	for i := range results {
		if err := results[i].Err; err != nil {
			(*Version)(h).report(b, partition, err)
		}
	}
	return nil
}

// Block returns the block of a partition, or nil if the partition is not on this node. It can be read until the handle
// is released; damage must be passed to Report.
func (h *Handle) Block(partition int) Block {
	if s := (*Version)(h).slot(partition); s != nil {
		return s.Block
	}
	return nil
}

// Report reports an error from reading the block b of a partition after Get or in EachBlock. If b is damaged, it is loaded again. If b is no longer
// the partition's block, nothing is done: its successor may be intact. Report returns false if there are too many reports at the moment: this one is
// lost, and should be repeated.
func (h *Handle) Report(partition int, b Block, err error) bool {
	s := (*Version)(h).slot(partition)
	return s == nil || s.Block != b || (*Version)(h).report(s, partition, err)
}

// Held reports for each partition whether its block is on this node and not damaged.
func (h *Handle) Held() []bool { return (*Version)(h).Held() }

// Withheld reports whether clients cannot read the version by its name: see Version.Withhold. If the cluster has no secret, it is not read for other
// nodes either, as clients can ask like them. Nodes ask for what others advertise, which is not withheld; only a comparison reads more.
func (h *Handle) Withheld() bool { return h.withheld.Load() && !h.wasCurrent.Load() }

// Leaving reports whether the version is being closed and waits for its references.
func (h *Handle) Leaving() bool { return h.refs.Load() < 0 }

// Replaced reports whether the version has been replaced. Other nodes may have removed it.
func (h *Handle) Replaced() bool { return h.retired.Load() != 0 }

// Release releases the reference. The handle and its values must not be used afterwards.
func (h *Handle) Release() { (*Version)(h).release() }
