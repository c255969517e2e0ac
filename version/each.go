package version

// EachBlock calls f for every block that can be read, of every version of the set, and holds the
// block's version meanwhile. Unlike AcquireVersion it does not keep a retired version from being
// removed; an f that takes long must end when [Handle.Leaving] says so. The first error ends the
// walk.
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

// Leaving says that the version is being closed and waits for those who hold it.
func (h *Handle) Leaving() bool { return h.refs.Load() < 0 }
