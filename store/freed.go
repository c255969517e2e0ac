package store

import (
	"syscall"

	"sequins/internal/content"
)

// Freed returns how many bytes of the disk are freed when the contents of some inputs of a db are removed: the sizes of the blocks that no
// other content shares. Those that are not there free nothing.
func (s *Store) Freed(db string, inputs []content.Input) (bytes int64) {
	type inode struct{ device, number uint64 }
	found := make(map[inode]uint64) // how many names were found
	for _, in := range inputs {
		d, err := s.Dir(db, in)
		if err != nil {
			continue
		}
		complete, _ := d.Complete() // what cannot be listed frees nothing
		for _, p := range complete {
			info, err := s.fs.Stat(d.BlockPath(p))
			if err != nil {
				continue
			}
			stat, ok := info.Sys().(*syscall.Stat_t)
			if !ok {
				bytes += info.Size()
				continue
			}
			id := inode{uint64(stat.Dev), stat.Ino}           //nolint:unconvert // its type differs between platforms
			if found[id]++; found[id] == uint64(stat.Nlink) { //nolint:unconvert // like that of Dev
				bytes += info.Size()
			}
		}
	}
	return bytes
}
