package version

// EachBlock calls f for every block that can be read, of every version of the set, and holds the
// version meanwhile. Unlike AcquireVersion it does not keep a retired version from being removed.
// The first error ends it.
func (s *Set) EachBlock(f func(h *Handle, partition int, b Block) error) error {
	for _, v := range *s.named.Load() {
		if err := v.eachBlock(f); err != nil {
			return err
		}
	}
	return nil
}

func (v *Version) eachBlock(f func(h *Handle, partition int, b Block) error) error {
	if !v.acquire() {
		return nil
	}
	defer v.release()
	for p := range v.blocks {
		s := v.blocks[p].Load()
		if s == nil || s.damaged.Load() {
			continue
		}
		if err := f((*Handle)(v), p, s.Block); err != nil {
			return err
		}
	}
	return nil
}
