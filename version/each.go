package version

// EachBlock calls f for every readable block of every version in the set, and holds a reference to the block's version
// meanwhile. Unlike AcquireVersion it does not delay the removal of a retired version; an f that takes long must return
// when [Handle.Leaving] is true. EachBlock returns the first error.
func (s *Set) EachBlock(f func(h *Handle, partition int, b Block) error) error {
	for _, v := range *s.named.Load() {
		for p := range v.blocks {
			if err := v.withBlock(p, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *Version) withBlock(p int, f func(h *Handle, partition int, b Block) error) error {
	if !v.acquire() {
		return nil
	}
	defer v.release()
	if s := v.blocks[p].Load(); s != nil && !s.damaged.Load() {
		return f((*Handle)(v), p, s.Block)
	}
	return nil
}

// Leaving reports whether the version is being closed and waits for its references.
func (h *Handle) Leaving() bool { return h.refs.Load() < 0 }
