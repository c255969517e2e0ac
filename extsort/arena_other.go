//go:build !linux

package extsort

func mapArena(size int) ([]byte, error) { return make([]byte, size), nil }

func unmapArena([]byte) error { return nil }
