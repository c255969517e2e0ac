package offheap

import "golang.org/x/sys/unix"

// Map returns n bytes of zeros. They must be returned with Unmap.
func Map(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // only advice
	return b, nil
}

// Unmap returns the memory of Map. Nothing may use it after that.
func Unmap(b []byte) error { return unix.Munmap(b) }
