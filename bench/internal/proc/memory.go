package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Populate allocates n bytes of memory from the kernel, writes to them and frees them, so that the next measurement
// finds them populated. The host of a virtual machine reclaims memory that is free for two seconds (free page
// reporting), and each piece of it then costs a fault on the host, which would count or not count in a measurement
// depending on what ran before it.
func Populate(n int64) error {
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("%d bytes of memory: %w", n, err)
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // in large pieces, as the kernel also reports it
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	return unix.Munmap(b)
}
