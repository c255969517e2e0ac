//go:build !linux

package blocks

// Only Linux tells cheaply which pages of a map are in memory, so elsewhere nothing is mapped and every page is
// read.

func maxMaps() int { return 0 }

func mapFile(int, int64) []byte { return nil }

func randomAccess(int, int64) {}

func (*blockFile) readCached([]byte, int64) bool { return false }

func (*blockFile) resident(int64, int64) (bool, error) { return true, nil }

func (*blockFile) forget(int64, int64) error { return nil }

type residency struct{ start int64 }

func (*residency) covers([]byte, int64, int64) (bool, error) { return false, nil }

func mapHuge(int) []byte { return nil }

func unmap([]byte) error { return nil }
