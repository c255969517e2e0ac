package extsort

import "golang.org/x/sys/unix"

// mapArena takes memory from the operating system. Outside Go's heap it costs nothing until it is
// used, the garbage collector neither clears nor counts it, and it is given back at once. In huge
// pages, if there are any, records in random order are found faster.
func mapArena(size int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE) // advice: without it all works as well
	return mem, nil
}

func unmapArena(mem []byte) error { return unix.Munmap(mem) }
